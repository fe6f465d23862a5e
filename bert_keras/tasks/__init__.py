"""Tasks: a backbone, a head and a preprocessor that `fit` trains from raw text.

The way from a text to the loss, with the files to read, in this order:

```
fit(texts, labels)                       task.py              Task.fit
  |
  v  other libraries' tables and dicts   named_columns.py     in_our_form
  v  lists, arrays, columns, tables      task_data.py         TaskData.columns
columns of texts and labels              user_columns.py
  |
  v  tokens and labels, checked          task_data.py         TaskData.encode
encoded rows                             encoded_examples.py  made by the task's `encode_texts`
  |                                      encoded_labels.py    and `encode_labels`
  v  rows of similar length together     task_data.py         TaskData.batches
batches                                  ../preprocessing/batching.py   BucketedBatches
  |
  v  one batch                           encoded_examples.py  EncodedExamples.inputs, called by
  |                                                           BucketedBatches as `make_inputs`
{token_ids, segment_ids, padding_mask}   ../preprocessing/packing.py    pack
  |
  v  optimizer of this run               ../training/recipe.py          Recipe.start_run
  v  Keras's loop, in whole steps        ../engine/safe_model.py        SafeModel.fit
  v  one step                            task.py              Task.train_step
  |                                      text_classifier.py   TextClassifier.call
hidden states                            ../models/backbone.py          Backbone.call
  |
  v
logits                                   ../heads/sequence.py           SequenceHead.call
  |
  v  labels, weights
loss                                     ../training/losses.py, as ../training/recipe.py compiled it
```

Data sets that yield batches (`PyDataset`, `tf.data`, `DataLoader`, generators) are wrapped by
`wrapped_datasets.py`, and each batch goes the same way. A task defines its head, its loss and its
labels; one whose texts do not each become one row (windows, choices, masked texts) overrides
`encode_texts`, and nothing else about data. An `Answerer` of `bert_keras.answers` answers, for the
task, an exported folder and a server alike. `docs/guides/a_task_of_your_own.py` is an example.
"""
