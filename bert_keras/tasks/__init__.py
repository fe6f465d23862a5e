"""Tasks: a backbone, a head and a preprocessor that `fit` trains from raw text.

The way from a text to the loss, with the files to read, in this order:

```
fit(texts, labels)                       task.py              Task.fit
  |
  v  lists, tables, dicts, datasets      user_columns.py      normalize_columns
columns of texts and labels
  |
  v  tokens and labels, checked          task.py              Task.encode_columns, by the task's
rows with labels                         encoded_labels.py    `encode_texts` and `encode_labels`
  |
  v  rows of similar length together     ../preprocessing/batching.py       BucketedBatches
  |
  v  one batch                           ../preprocessing/collate.py        TextRows.inputs
{token_ids, segment_ids, padding_mask}
  |
  v  optimizer of this run               ../training/recipe.py          TrainingConfig.begin
  v  Keras's loop, in whole steps        ../models/model.py             BuiltModel.fit
  v  one step                            ../engine/train_step.py        AtomicTrainStep
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
`dataset_adapters.py`, and each batch goes the same way. A task defines its head, its loss and its
labels; one whose texts do not each become one row (windows, choices, masked texts) overrides
`encode_texts`, and nothing else about data. An `Answerer` of `bert_keras.answers` answers, for the
task, an exported folder and a server alike. `docs/guides/a_task_of_your_own.py` is an example.
"""
