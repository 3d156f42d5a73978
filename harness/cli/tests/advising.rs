//! `collo advise`: the decision of the ledger about one task, on cards as a scheduler sees them, with what sharing is expected to cost.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::sim::Machine;
use crate::support::{Bench, checkout, collo};

const GIB: u64 = 1 << 30;

/// A project with two GPU models.
fn bench() -> Bench {
    ["a100-40gb", "l4"].into_iter().fold(Bench::new(), |bench, name| {
        let path = format!("mig-profiles/{name}.toml");
        let text = fs_err::read_to_string(checkout().join(&path)).expect("there");
        bench.file(&path, &text)
    })
}

fn advice(bench: &Bench, question: &Value) -> Value {
    bench.write("question.json", &question.to_string());
    bench.collo(&["advise", "question.json"]).exits(0).json()
}

/// A card under MPS with a task whose profile is given.
fn card(id: &str, free_gib: u64, sm_active_ratio: f64) -> Value {
    json!({"id": id, "node": format!("node-{id}"), "gpu": "a100-40gb", "sharing": "mps", "free_bytes": free_gib * GIB,
        "sm_active_ratio": sm_active_ratio,
        "tasks": [{"id": format!("on {id}"), "memory_bytes": 4 * GIB, "sm_active_ratio": sm_active_ratio, "step_s": 0.1}]})
}

fn task() -> Value {
    json!({"memory_bytes": 6 * GIB, "sm_active_ratio": 0.3, "step_s": 0.1})
}

#[test]
fn a_task_goes_to_the_card_with_the_most_free_memory_whose_sms_have_room() {
    let bench = bench();
    let question = json!({"task": task(), "cards": [card("a", 34, 0.92), card("b", 20, 0.4), card("c", 30, 0.5)]});
    let said = advice(&bench, &question);
    assert_eq!(
        (&said["decision"], &said["cards"], &said["node"]),
        (&json!("place"), &json!(["c"]), &json!("node-c")),
        "{said:#}"
    );
    assert_eq!(said["seen"][0]["why_not"], "SM activity above the cap");
    assert_eq!(said["seen"][1]["candidate"], true);
    assert_eq!(said["limit"]["environment"]["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"], "0=6144M");
    let expected = &said["expected"];
    assert_eq!((&expected["from"], &expected["predictor"]), (&json!("predicted"), &json!("published-a100-company")), "{said:#}");
    let slowdown = |of: &Value| of["slowdown"]["estimate"].as_f64().expect("a number");
    assert!(slowdown(expected) > 1.0 && slowdown(expected) < 2.0, "{expected}");
    assert!(expected["uncertain"].as_str().is_some_and(|why| why.contains("spans a factor of")), "{expected}");
    assert_eq!(expected["of_others"][0]["id"], "on c");
    assert!(slowdown(&expected["of_others"][0]) > 1.0, "{expected}");
}

#[test]
fn it_waits_for_memory_and_is_refused_what_no_card_has() {
    let bench = bench();
    let cards = json!([card("a", 3, 0.2), card("b", 5, 0.2)]);
    let waits = advice(&bench, &json!({"task": task(), "cards": cards}));
    assert_eq!((&waits["decision"], &waits["why"]), (&json!("wait"), &json!("no card: too little free memory")), "{waits:#}");
    let never = advice(&bench, &json!({"task": {"memory_bytes": 60 * GIB}, "cards": cards}));
    assert_eq!(
        (&never["decision"], &never["why"]),
        (&json!("never"), &json!("it needs 60.0 GiB, and no card has as much memory"))
    );
    // The limit on each card is no less than the need: MPS counts in MiB.
    let card_of = |id: &str| json!({"id": id, "node": "n", "gpu": "nvidia a100-sxm4-40gb", "sharing": "mps"});
    let two =
        json!({"task": {"cards": 2, "memory_bytes": GIB + 1}, "cards": [card_of("a"), card_of("b")], "policy": "exclusive"});
    let placed = advice(&bench, &two);
    assert_eq!(placed["cards"], json!(["a", "b"]), "{placed:#}");
    assert_eq!(placed["limit"]["environment"]["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"], "0=1025M,1=1025M");
    // Of cards of one node each.
    let both = advice(&bench, &json!({"task": {"cards": 2}, "cards": cards}));
    assert_eq!(both["decision"], "never", "{both:#}");
}

#[test]
fn memory_that_no_listed_task_explains_is_of_a_task_that_nothing_is_known_of() {
    let bench = bench();
    let unlisted = json!({"id": "a", "gpu": "a100-40gb", "free_bytes": 5 * GIB});
    let said = advice(&bench, &json!({"policy": "ff", "task": task(), "cards": [unlisted]}));
    assert_eq!((&said["decision"], &said["seen"][0]["unlisted_task"]), (&json!("wait"), &json!(true)), "{said:#}");
    let idle = json!({"id": "a", "gpu": "a100-40gb", "free_bytes": 39 * GIB});
    let said = advice(&bench, &json!({"policy": "ff", "task": task(), "cards": [idle]}));
    assert_eq!((&said["decision"], &said["expected"]["from"]), (&json!("place"), &json!("alone")), "{said:#}");
}

#[test]
fn nothing_is_predicted_of_a_mode_that_the_predictor_does_not_know() {
    let bench = bench();
    let mut naive = card("a", 30, 0.4);
    naive["sharing"] = json!("naive");
    let said = advice(&bench, &json!({"task": task(), "cards": [naive]}));
    let why = said["expected"]["why_not"].as_str().expect("a reason");
    assert!(why.contains("naive sharing may gain far less"), "{said:#}");
    assert_eq!((&said["expected"]["slowdown"], &said["limit"]), (&Value::Null, &Value::Null));
    let mut unknown = card("a", 30, 0.4);
    unknown["tasks"] = json!([{"id": "b"}]);
    let said = advice(&bench, &json!({"task": {"sm_active_ratio": 0.2}, "cards": [unknown]}));
    let why = said["expected"]["why_not"].as_str().expect("a reason");
    assert!(why.starts_with("task `b`: its SM activity alone is neither given nor measured"), "{said:#}");
}

#[test]
fn a_question_that_cannot_be_read_is_answered_with_its_place() {
    let bench = bench();
    bench.write("q.json", "{\"task\": {},\n \"cards\": [{\"id\": \"a\", \"gpu\": \"a100-40gb\", \"sharing\": \"mig\"}]}");
    bench.collo(&["advise", "q.json"]).exits(2).says("unknown variant `mig`").says("q.json:2");
    bench.write("q.json", "{\"task\": {}, \"cards\": [{\"id\": \"a\", \"gpu\": \"a100-41gb\"}]}");
    bench.collo(&["advise", "q.json"]).exits(2).says("unknown GPU `a100-41gb`").says("did you mean `a100-40gb`?");
    bench.write("q.json", "{\"task\": {\"workload\": \"smal\"}, \"cards\": [{\"id\": \"a\", \"gpu\": \"l4\"}]}");
    bench.collo(&["advise", "q.json"]).exits(2).says("smal");
    bench.write("q.json", "{\"policy\": \"magm:margin=2GB\", \"task\": {}, \"cards\": [{\"id\": \"a\", \"gpu\": \"l4\"}]}");
    bench.collo(&["advise", "q.json"]).exits(2).says("`magm:margin=2GB` decides by the memory of the task, which is not known");
    bench.collo(&["advise", "none.json"]).exits(2).says("`none.json`");
}

#[test]
fn what_the_reports_of_the_project_measured_goes_before_what_is_predicted() {
    let machine = Machine::new("a100-40gb,noise=0", "[axes]\nworkload = \"small\"\nsharing = \"mps\"\ndegree = [1, 2]\n");
    // Long enough for memory to be sampled.
    let machine = machine.env("COLLO_SIM_EPOCH_S", "1");
    machine.collo(&["run", "x"]).exits(0);
    let report = machine.collo(&["report", "x", "--format", "json"]).exits(0).json();
    let cell = |label: &str| {
        let cells = report["cells"].as_array().expect("cells");
        cells.iter().find(|cell| cell["cell"] == label).unwrap_or_else(|| panic!("no {label}"))
    };
    let pair = &cell("small×2 mps b32")["members"][0];
    let small = json!({"workload": "small", "settings": pair["settings"]});
    let on = |simulated: bool| {
        json!({"task": small, "cards": [{"id": "a", "gpu": "a100-40gb", "sharing": "mps", "simulated": simulated,
            "sm_active_ratio": 0.3, "tasks": [small]}]})
    };
    let said = advice(&machine.bench, &on(true));
    let expected = &said["expected"];
    assert_eq!((&expected["from"], &expected["simulated"]), (&json!("measured"), &json!(true)), "{said:#}");
    assert_eq!(expected["slowdown"]["estimate"], pair["slowdown"]["estimate"]);
    assert_eq!(expected["campaign"], report["campaign"]);
    assert_eq!(said["task"]["memory_from"], "measured");
    // On a real card nothing of it holds.
    let real = advice(&machine.bench, &on(false));
    assert_eq!((&real["task"]["memory_bytes"], &real["expected"]["from"]), (&Value::Null, &Value::Null), "{real:#}");
}

/// The extender of the guide, listening; killed on drop.
struct Extender {
    child: Child,
    port: u16,
}

impl Extender {
    fn start(cards: &std::path::Path, project: &std::path::Path) -> Extender {
        let script = checkout().join("docs/examples/scheduler_extender.py");
        let mut command = Command::new("python3");
        command.arg("-B").arg(script).arg("--cards").arg(cards).arg("--project").arg(project);
        command.arg("--collo").arg(collo()).args(["--port", "0"]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3 is there");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("it listens");
        let port =
            line.trim().rsplit(' ').next().and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("no port in {line}"));
        Extender { child, port }
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        write!(stream, "POST {path} HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            .expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        let (_, json) = answer.split_once("\r\n\r\n").expect("a body");
        serde_json::from_str(json).unwrap_or_else(|wrong| panic!("{wrong}: {answer}"))
    }
}

impl Drop for Extender {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_extender_of_the_guide_answers_the_scheduler_of_kubernetes() {
    let bench = bench();
    bench.write("cards.json", &json!([card("a", 34, 0.92), card("b", 20, 0.4), card("c", 30, 0.5)]).to_string());
    let extender = Extender::start(&bench.at("cards.json"), &bench.at(""));
    // Keys as Go writes the fields of ExtenderArgs, which have no names of their own for JSON.
    let arguments = |annotations: Value| {
        json!({"Pod": {"metadata": {"name": "p", "annotations": annotations}}, "Nodes": null,
            "NodeNames": ["node-a", "node-b", "node-c", "node-d"]})
    };
    let asked = arguments(json!({"collo/task": task().to_string()}));
    let filtered = extender.post("/filter", &asked);
    assert_eq!(filtered["nodenames"], json!(["node-b", "node-c"]), "{filtered:#}");
    assert_eq!(filtered["failedNodes"]["node-a"], "SM activity above the cap");
    assert_eq!(filtered["failedNodes"]["node-d"], "none of its cards is known");
    let priorities = extender.post("/prioritize", &asked);
    let score = |host: &str| {
        let list = priorities.as_array().expect("a list");
        list.iter().find(|p| p["host"] == host).and_then(|p| p["score"].as_i64()).unwrap_or_else(|| panic!("{priorities:#}"))
    };
    assert_eq!((score("node-c"), score("node-a"), score("node-d")), (10, 0, 0), "{priorities:#}");
    assert!((1..10).contains(&score("node-b")), "{priorities:#}");
    let of_others = extender.post("/filter", &arguments(Value::Null));
    assert_eq!(of_others["nodenames"].as_array().map(Vec::len), Some(4), "pods that do not ask are left alone");
    let broken = extender.post("/filter", &arguments(json!({"collo/task": "{\"memory\": 1}"})));
    assert!(broken["error"].as_str().expect("an error").contains("unknown field `memory`"), "{broken:#}");
}
