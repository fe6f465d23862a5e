"""The words by which readers search for a page, beyond those of its title.

`conf.py` puts them into the page's index, where the search looks first. A query finds a phrase that
holds it, if it is at least half as long. Each phrase leads to one page.
"""

WORDS = {
    "en": {
        "start/install": "install, installation, pip install, requirements, extras, windows",
        "start/support": "supported versions, python version, compatibility, semantic versioning",
        "start/five_lines": "quick start, getting started, hello world",
        "start/pick_a_task": "which task, list of tasks",
        "start/pick_a_model": "which model, choose a model, multilingual model",
        "start/pick_a_backend": "backend, pytorch or jax, keras_backend",
        "start/common_errors": "error message, unknown layer, could not locate class, traceback",
        "tutorials/text_classification": "text classification, sentiment analysis, fine-tuning, "
        "finetune, fine-tune bert, classify texts",
        "tutorials/token_classification": "named entity recognition, ner, part of speech, "
        "pos tagging, sequence labeling, token classification",
        "tutorials/question_answering": "question answering, reading comprehension, squad",
        "tutorials/semantic_search": "semantic search, vector search, retrieval, nearest neighbours",
        "tutorials/train_a_reranker": "train a reranker, cross-encoder training",
        "tutorials/text_embedding": "sentence embeddings, sentence similarity, contrastive learning, "
        "sentence vectors",
        "tutorials/multiple_choice": "multiple choice, swag",
        "tutorials/masked_lm": "fill mask, masked language model, score a sentence",
        "tutorials/distillation": "knowledge distillation, teacher student, smaller model",
        "tutorials/custom_training_loop": "custom training loop, train_on_batch",
        "tutorials/custom_head": "custom head, own head, functional model",
        "tutorials/attention_and_saliency": "attention weights, explain a prediction, saliency, "
        "integrated gradients, interpretability",
        "tutorials/migrating_from_transformers": "migrate from transformers, hugging face trainer",
        "tutorials/migrating_from_sentence_transformers": "sentence-transformers, "
        "sentencetransformer, cross-encoder, encode texts",
        "tutorials/migrating_from_keras_hub": "keras-nlp, kerashub, migrate from keras_nlp",
        "guides/search_your_documents": "search documents, faiss, qdrant, vector database, bm25, "
        "hybrid search, ndcg, rag",
        "guides/multi_label": "multi-label, multilabel, multi label classification, threshold",
        "guides/class_imbalance": "class imbalance, class weights, imbalanced data, class_weight, "
        "focal loss",
        "guides/save_load_resume": "save model, save a model, load model, load a model, "
        "resume training, continue training, load_model, save weights, initial_epoch",
        "guides/callbacks": "early stopping, tensorboard, weights & biases, wandb, mlflow, "
        "keras tuner, kerastuner, hyperparameter search, hyperparameter tuning, modelcheckpoint, "
        "callbacks, logging",
        "guides/gpu": "gpu, gpu memory, cuda, out of memory, oom, mixed precision, bfloat16, "
        "gradient accumulation, gradient checkpointing",
        "guides/several_devices": "multi-gpu, multiple gpus, distributed training, data parallel, "
        "tensor parallelism, tpu, torchrun",
        "guides/toolbox": "lora, peft, freeze layers, layer-wise learning rate, r-drop, adapters",
        "guides/deploy": "deploy, deployment, production, docker, kubernetes",
        "guides/embedder_and_reranker": "embedding server, rerank api, prometheus",
        "guides/serving": "serve, http server, rest api, openai client, inference server",
        "guides/export": "onnx, savedmodel, tflite, litert, openvino, export a model",
        "guides/checkpoints": "pretrained models, presets, hugging face, load from hugging face, "
        "from_preset, pytorch_model.bin, safetensors",
        "guides/long_texts": "long texts, long documents, more than 512 tokens, truncation, "
        "sliding window",
        "guides/retrieval": "reranking, splade, colbert, reranker, hard negatives, matryoshka",
        "guides/pretraining": "pre-training, pretraining from scratch, train from scratch",
        "guides/inputs": "dataframe, pandas, data formats, tf.data, dataloader",
        "guides/tags_questions_choices": "conll, doccano, label format for tags",
        "guides/few_examples": "few examples, small data set, little data",
        "guides/your_own_data": "my own data, csv, tsv, json, parquet, own data, missing labels, encoding",
        "guides/speed": "speed, slow training, faster, speed up inference, int8, quantization",
        "guides/untrusted_files": "security, pickle, safe loading",
        "guides/command_line": "command line, cli, terminal",
        "guides/chinese": "chinese, chinese bert",
        "way_to_bert/ngrams": "perplexity, n-gram, language model",
        "results/benchmarks": "benchmarks, how fast",
        "results/recipes": "scores, accuracy on glue, glue, results",
    },
    "zh": {
        "start/install": "安装, 镜像, HF_ENDPOINT, 下载模型, 离线使用",
        "start/support": "支持的版本, 版本兼容, 语义化版本",
        "start/five_lines": "快速开始, 入门示例",
        "start/pick_a_task": "选任务, 有哪些任务",
        "start/pick_a_model": "选模型, 多语言模型",
        "start/pick_a_backend": "选后端, 后端",
        "start/common_errors": "报错, 错误信息, 常见错误",
        "tutorials/sentiment": "文本分类, 情感分析, 情感分类, 微调, 微调 BERT",
        "tutorials/named_entities": "命名实体识别, 实体识别, NER, 序列标注, 词性标注",
        "tutorials/reading": "阅读理解, 问答, CMRC",
        "tutorials/matching": "语义匹配, 文本匹配, 句子对, 文本相似度",
        "tutorials/semantic_search": "语义检索, 向量检索, 语义搜索",
        "tutorials/train_a_reranker": "训练重排模型, 精排, 交叉编码器",
        "tutorials/text_embedding": "句向量, 文本向量, 对比学习",
        "tutorials/multiple_choice": "选择题, 多项选择",
        "tutorials/masked_lm": "完形填空, 掩码语言模型",
        "tutorials/distillation": "知识蒸馏, 蒸馏, 小模型",
        "tutorials/custom_training_loop": "自定义训练循环",
        "tutorials/custom_head": "自定义预测头",
        "tutorials/attention_and_saliency": "注意力可视化, 可解释性, 显著性, 解释预测",
        "tutorials/migrating_from_transformers": "从 transformers 迁移",
        "tutorials/migrating_from_sentence_transformers": "从 sentence-transformers 迁移",
        "tutorials/migrating_from_keras_hub": "从 KerasHub 迁移, keras-nlp",
        "guides/search_your_documents": "检索文档, RAG, 向量数据库, 混合检索, 全文检索, 检索评测",
        "guides/multi_label": "多标签, 多标签分类, 阈值",
        "guides/class_imbalance": "类别不平衡, 样本不均衡, 类别权重, 数据不平衡",
        "guides/save_load_resume": "保存模型, 加载模型, 继续训练, 断点续训, 恢复训练, 保存权重",
        "guides/callbacks": "早停, 提前停止, TensorBoard, wandb, MLflow, 超参数搜索, 调参, "
        "KerasTuner, 回调",
        "guides/gpu": "显存, 显存不足, 显存不够, GPU, 混合精度, 梯度累积, CUDA",
        "guides/several_devices": "多卡, 多卡训练, 分布式训练, 数据并行, 多 GPU",
        "guides/toolbox": "LoRA, 冻结, 冻结层, 逐层学习率",
        "guides/deploy": "部署, 上线, Docker, 生产环境",
        "guides/embedder_and_reranker": "向量服务, 重排接口, Kubernetes",
        "guides/serving": "服务器, HTTP 接口, 接口",
        "guides/export": "导出, 导出 ONNX, ONNX, SavedModel, 手机",
        "guides/checkpoints": "预训练模型, 加载 Hugging Face 模型, from_preset, 本地文件夹",
        "guides/long_texts": "长文本, 超过 512, 长文档, 截断",
        "guides/retrieval": "检索, 搜索, 重排, 难负例, SPLADE, ColBERT",
        "guides/pretraining": "预训练, 从头训练, 从零训练",
        "guides/inputs": "数据格式, DataFrame, pandas",
        "guides/tags_questions_choices": "CoNLL, doccano, 标注格式",
        "guides/few_examples": "数据很少, 小样本, 数据少",
        "guides/your_own_data": "CSV, TSV, JSON, Parquet, 自己的数据, 缺失的标签, 乱码",
        "guides/speed": "速度, 加速, 训练太慢, 量化, int8",
        "guides/untrusted_files": "安全, 来路不明的文件",
        "guides/command_line": "命令行, 终端",
        "guides/chinese": "中文 BERT, 分词, 要不要分词, 繁体",
        "way_to_bert/ngrams": "困惑度, n 元语法, 语言模型",
        "results/benchmarks": "性能测量, 有多快",
        "results/recipes": "得分, 准确率",
    },
}


def words_of(language):
    """Returns {page: its phrases}."""
    return {page: text.split(", ") for page, text in WORDS[language].items()}
