from bert_keras.migration_hints import hints_of_module

__getattr__ = hints_of_module(__name__)
