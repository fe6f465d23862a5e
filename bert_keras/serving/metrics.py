"""A server's metrics for Prometheus."""

import prometheus_client


class Numbers:
    """Counters and histograms of a server in their own registry.

    Args:
        models: list of `Served`.
    """

    def __init__(self, models):
        self.registry = prometheus_client.CollectorRegistry()
        options = {"namespace": "bert_keras", "registry": self.registry}
        self.responses = prometheus_client.Counter(
            "responses", "Responses by route and status", ["route", "status"], **options
        )
        self.seconds = prometheus_client.Histogram(
            "response_seconds", "Time from request to response", ["route"], **options
        )
        self.rows = prometheus_client.Histogram(
            "batch_rows",
            "Rows answered in one batch",
            ["model"],
            buckets=[2**n for n in range(9)],
            **options,
        )
        self.batch_seconds = prometheus_client.Histogram(
            "batch_seconds", "Time of a batch", ["model"], **options
        )
        self.waiting = prometheus_client.Gauge(
            "waiting_rows", "Rows waiting for an answer", ["model"], **options
        )
        for model in models:
            self.waiting.labels(model.name).set_function(lambda x=model: len(x.batcher.waiting))
            model.batcher.observe = lambda rows, seconds, x=model: self.batch(x.name, rows, seconds)

    def response(self, route, status, seconds):
        """Counts a response."""
        self.responses.labels(route, status).inc()
        self.seconds.labels(route).observe(seconds)

    def batch(self, name, rows, seconds):
        """Counts a batch of a model."""
        self.rows.labels(name).observe(rows)
        self.batch_seconds.labels(name).observe(seconds)

    def text(self):
        """Returns all metrics in Prometheus's format, bytes."""
        return prometheus_client.generate_latest(self.registry)
