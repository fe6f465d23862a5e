"""Schedules, optimizers, losses and callbacks."""

from bert_keras.training.callbacks import BestOnMetric as BestOnMetric
from bert_keras.training.contrastive import CosineRegression as CosineRegression
from bert_keras.training.contrastive import MultipleNegativesRanking as MultipleNegativesRanking
from bert_keras.training.contrastive import TripletLoss as TripletLoss
from bert_keras.training.cosent import AnglE as AnglE
from bert_keras.training.cosent import CoSENT as CoSENT
from bert_keras.training.list_losses import LambdaLoss as LambdaLoss
from bert_keras.training.list_losses import ListwiseCrossentropy as ListwiseCrossentropy
from bert_keras.training.list_losses import RelevanceCrossentropy as RelevanceCrossentropy
from bert_keras.training.losses import SigmoidCrossentropy as SigmoidCrossentropy
from bert_keras.training.losses import SpanCrossentropy as SpanCrossentropy
from bert_keras.training.losses import SparseCrossentropy as SparseCrossentropy
from bert_keras.training.matryoshka import Matryoshka as Matryoshka
from bert_keras.training.optimizer import AdamW as AdamW
from bert_keras.training.optimizer import Lamb as Lamb
from bert_keras.training.schedules import WarmupDecay as WarmupDecay
from bert_keras.training.schedules import layer_wise_decay as layer_wise_decay
from bert_keras.training.teacher_losses import EmbeddingMSE as EmbeddingMSE
from bert_keras.training.teacher_losses import MarginMSE as MarginMSE
from bert_keras.training.teacher_losses import TeacherDivergence as TeacherDivergence
from bert_keras.training.training_checkpoint import TrainingCheckpoint as TrainingCheckpoint
from bert_keras.training.training_log import TrainingLog as TrainingLog
