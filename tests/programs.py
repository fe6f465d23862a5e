"""Programs for ONNX Runtime that are written together, since PyTorch takes seconds for each."""

import re

import onnx
import pytest

from bert_keras.export import program_formats as formats
from bert_keras.inputs import TOKEN_IDS
from bert_keras.tasks.task import Task


class JointModel:
    """Tasks with equal backbones as one model, which computes the backbone once."""

    def __init__(self, tasks):
        self.tasks = tasks
        self.backbone, self.num_input_axes = tasks[0].backbone, tasks[0].num_input_axes
        self.token_inputs = {name for task in tasks for name in task.token_inputs}
        self.further_inputs = {name for task in tasks for name in task.further_inputs}

    def __call__(self, inputs, training):
        found, names = [], [formats.signature_of(task)[0] for task in self.tasks]

        def outputs_once(task, inputs, **options):
            found[:] = found or [self.backbone(inputs, training=training)]
            return found[0]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Task, "backbone_outputs", outputs_once)
            return [
                task({name: inputs[name] for name in own}, training=training)
                for task, own in zip(self.tasks, names, strict=True)
            ]


def programs_of(tasks, path):
    """Returns the ONNX program of each task, bytes, cut out of one program of all.

    Args:
        tasks: list of tasks with equal backbones and the same number of input axes.
        path: path of the program of all.
    """
    is_invalid = formats._is_invalid
    with pytest.MonkeyPatch.context() as patch:
        # A check of inputs that some tasks have would be a part of all programs.
        patch.setattr(formats, "_is_invalid", lambda model, *x: is_invalid(model.backbone, *x))
        formats.WRITERS["onnx"].write(JointModel(tasks), str(path))
    whole, programs = onnx.load(path), []
    inputs = {value.name for value in whole.graph.input}
    for node in whole.graph.node:  # The number of rows may be read off any input.
        axes = {attribute.name: attribute.i for attribute in node.attribute}
        is_number_of_rows = node.op_type == "Shape" and axes == {"start": 0, "end": 1}
        if is_number_of_rows and node.input[0] in inputs:
            node.input[0] = TOKEN_IDS
    for number, task in enumerate(tasks):
        prefix = re.compile(f"{number}(_|$)")
        outputs = [x.name for x in whole.graph.output if prefix.match(x.name)]
        inputs = [*formats.signature_of(task)[0]]
        program = onnx.utils.Extractor(whole).extract_model(inputs, outputs)
        for value in program.graph.output:
            name = value.name[prefix.match(value.name).end() :] or "logits"
            program.graph.node.append(onnx.helper.make_node("Identity", [value.name], [name]))
            value.name = name
        programs.append(program.SerializeToString())
    return programs
