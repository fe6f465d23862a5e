from bert_keras.other_names import hints_of_module

__getattr__ = hints_of_module(__name__)
