"""What training needs beside the model: schedules, optimizers, losses, callbacks."""

from bert_keras.training.callbacks import BestOnMetric, GradualUnfreezing
from bert_keras.training.consistency import SeveralMasks
from bert_keras.training.contrastive import CosineRegression, MultipleNegativesRanking, TripletLoss
from bert_keras.training.losses import (
    FocalCrossentropy,
    SigmoidCrossentropy,
    SpanCrossentropy,
    SparseCrossentropy,
    consistency_loss,
)
from bert_keras.training.optimizer import AdamW, Lamb
from bert_keras.training.schedules import PhasedSchedule, WarmupDecay
from bert_keras.training.stages import layer_wise_decay, stages_from_the_top
from bert_keras.training.training_checkpoint import TrainingCheckpoint
from bert_keras.training.training_log import TrainingLog
