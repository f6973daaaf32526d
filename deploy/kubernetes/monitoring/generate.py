#!/usr/bin/env python3
"""Writes rules.yaml from ../../prometheus/recording.yml and alerts.yml. Change those files, run this, and commit all of them.

The Prometheus Operator takes rules only as objects of the kind PrometheusRule. deploy/tests/check.py shows that they agree.
"""

import pathlib

HERE = pathlib.Path(__file__).resolve().parent

HEAD = """\
# Made by generate.py from deploy/prometheus, where the comments are. Do not change it here, except for the address of the runbooks:
#     sed -i 's|runbook_url: |&https://git.example.com/perennial/blob/main/|' rules.yaml
"""

OBJECT = """\
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: perennial-{name}
  labels: {{app.kubernetes.io/name: perennial}}
spec:
"""


def rules():
    """The two objects, as text."""
    objects = []
    for name in ("recording", "alerts"):
        lines = (HERE.parents[1] / f"prometheus/{name}.yml").read_text(encoding="utf-8").splitlines()
        kept = (f"  {line}\n" for line in lines if line.strip() and not line.lstrip().startswith("#"))
        objects.append(OBJECT.format(name=name) + "".join(kept))
    return HEAD + "---\n".join(objects)


if __name__ == "__main__":
    (HERE / "rules.yaml").write_text(rules(), encoding="utf-8")
