"""Kubernetes: a scheduler extender that asks `collo advise` which nodes a pod may go to, and in which order.

A pod says what it trains in an annotation:

    metadata:
      annotations:
        collo/task: '{"workload": "resnet50", "settings": {"batch_size": 64}}'

and kube-scheduler's configuration names this program:

    extenders:
      - urlPrefix: http://127.0.0.1:8888
        filterVerb: filter
        prioritizeVerb: prioritize
        weight: 1
        nodeCacheCapable: true

Messages are those of k8s.io/kube-scheduler/extender/v1 (types.go): ExtenderArgs in, ExtenderFilterResult or HostPriorityList out. Go reads
keys in any case, and writes them as its fields are called.

    python3 scheduler_extender.py --project /srv/collo --cards /run/collo/cards.json
"""

import argparse
import json
import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BEST = 10  # MaxExtenderPriority


def advise(options, task):
    """The answer of `collo advise` about a task on all cards of the cluster."""
    with open(options.cards, encoding="utf-8") as file:
        question = {"policy": options.policy, "task": task, "cards": json.load(file)}
    command = [options.collo, "-C", options.project, "advise"]
    done = subprocess.run(command, input=json.dumps(question), capture_output=True, text=True, timeout=2, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def task_of(pod):
    """What the pod says that it trains; None: collo is not asked about it."""
    text = (pod.get("metadata", {}).get("annotations") or {}).get("collo/task")
    return None if text is None else json.loads(text)


def names_of(arguments):
    names = arguments.get("nodenames")
    if names is None:
        names = [node["metadata"]["name"] for node in (arguments.get("nodes") or {}).get("items", [])]
    return names


def filtered(options, arguments):
    """Nodes with a card that the policy admits; of the others, why not."""
    names, task = names_of(arguments), task_of(arguments["pod"])
    if task is None:
        return {"nodenames": names, "failedNodes": {}}
    seen = advise(options, task)["seen"]
    fits = {card["node"] for card in seen if card["candidate"]}
    why = {card["node"]: card["why_not"] for card in seen}
    failed = {name: why.get(name) or "none of its cards is known" for name in names if name not in fits}
    return {"nodenames": [name for name in names if name in fits], "failedNodes": failed}


def priorities(options, arguments):
    """The node of the chosen card first; of the others, the less a neighbour is slowed down, the better."""
    names, task = names_of(arguments), task_of(arguments["pod"])
    if task is None:
        return [{"host": name, "score": 0} for name in names]
    answer = advise(options, task)
    scores = {}
    for card in answer["seen"]:
        slowdown = ((card["expected"] or {}).get("slowdown") or {}).get("estimate")
        score = BEST if card["id"] in answer["cards"] else round((BEST - 1) / slowdown) if slowdown else 0
        scores[card["node"]] = max(score, scores.get(card["node"], 0))
    return [{"host": name, "score": scores.get(name, 0)} for name in names]


def handler(options):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            read = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            arguments = {key.lower(): value for key, value in read.items()}
            try:
                answer = {"/filter": filtered, "/prioritize": priorities}[self.path](options, arguments)
            except Exception as wrong:  # The scheduler shows it with the pod.
                answer = {"error": str(wrong)} if self.path == "/filter" else []
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    return Handler


def main():
    parser = argparse.ArgumentParser(description="A scheduler extender of Kubernetes that asks `collo advise`.")
    parser.add_argument("--collo", default="collo")
    parser.add_argument("--project", default="/srv/collo")
    parser.add_argument("--cards", default="/run/collo/cards.json")
    parser.add_argument("--policy", default="magm:sm=80%")
    parser.add_argument("--port", type=int, default=8888)
    options = parser.parse_args()
    server = ThreadingHTTPServer(("127.0.0.1", options.port), handler(options))
    print(f"listening on port {server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
