//! `collo status --serve`: the page of a running campaign, as a browser on this machine asks for it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::{Bench, wait_for};

/// The answer to a GET of this path below an address; `None` where no server listens.
fn get(address: &str, path: &str) -> Option<String> {
    let (host, key) = address.strip_prefix("http://").and_then(|rest| rest.split_once('/')).expect("an address");
    let mut stream = TcpStream::connect(host).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    write!(stream, "GET /{key}{path} HTTP/1.1\r\nHost: {host}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// The body of an answer.
fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("a head and a body").1
}

#[test]
fn a_page_fills_while_a_campaign_runs_and_ends_with_it() {
    let bench = Bench::of("repetitions = 3\n[axes]\nworkload = \"sleep\"\nseconds = 0.3\nitems = 3\ndegree = [1, 2]");
    let running = bench.start(&["run", "x", "--no-report"]);
    wait_for("a stored run", || (bench.campaigns() > 0 && !bench.runs().is_empty()).then_some(()));
    let mut serving = bench.start(&["status", "--serve"]);
    let address = serving.first_line();
    let page = wait_for("the page", || get(&address, ""));
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.contains("runs are stored, ") && page.contains("; this page loads itself again after each run."), "{page}");
    assert!(page.contains("data-state=\"") && page.trim_end().ends_with("</html>"), "the whole page, which knows what it shows");
    assert!(!page.contains("href=\"report.md\"") && !page.contains("href=\"plots/"), "files are not served, and not linked");
    let first = get(&address, "state").expect("an answer");
    wait_for("another state", || get(&address, "state").filter(|now| body(now) != body(&first)));
    let other = get(&address, "runs").expect("an answer");
    assert!(other.starts_with("HTTP/1.1 404 ") && !other.contains("<html"), "{other}");
    running.ends().exits(0);
    let last = wait_for("the last state", || get(&address, "state").filter(|now| now.ends_with(", ended")));
    let page = get(&address, "").expect("the finished page is served a little longer");
    assert!(
        page.contains(&format!("data-state=\"{}\"", body(&last))) && page.contains("the campaign is no longer running."),
        "{page}"
    );
    serving.ends().exits(0);
    assert_eq!(get(&address, "state"), None, "no server listens any longer");
}

#[test]
fn without_a_campaign_there_is_no_page_to_serve() {
    Bench::new().collo(&["status", "--serve"]).exits(2).says("no campaign is stored yet, so that there is no page to serve");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port();
    let bench = Bench::of("repetitions = 1\n[axes]\nworkload = \"sleep\"\nseconds = 0.1\nitems = 1\ndegree = 1");
    bench.run(&[]).exits(0);
    let refused = bench.collo(&["status", &format!("--serve={port}")]).exits(2);
    refused.says(&format!("cannot listen on port {port}: ")).says("`--serve` without a port takes a free one");
}
