//! The commands of the control daemon.
//!
//! In: a line as typed. Out: its status, its answer, and whether the daemon is over.

use std::time::{Duration, Instant};

use super::daemon::{Shared, locked, set_limit, timeout};
use super::{size_bytes, system_name};

const LOOK: Duration = Duration::from_millis(10);
/// How long `terminate_client` waits for the client.
const PATIENCE: Duration = Duration::from_secs(5);

type Answer = (i32, String, bool);

fn said(text: impl Into<String>) -> Answer {
    (0, text.into(), false)
}

fn refused(text: impl Into<String>) -> Answer {
    (1, format!("{}\n", text.into()), false)
}

fn lines(items: impl Iterator<Item = String>) -> Answer {
    said(items.map(|item| item + "\n").collect::<String>())
}

/// Do what a line says.
pub fn answer(shared: &Shared, text: &str) -> Answer {
    let words: Vec<&str> = text.split_whitespace().collect();
    let Some((name, rest)) = words.split_first() else { return said("") };
    match *name {
        "quit" => quit(shared, timeout(rest)),
        "shutdown_server" => shutdown(shared, rest),
        "terminate_client" => terminate(shared, rest),
        "start_server" => start(shared, rest),
        "ps" => list(shared),
        name if name.contains("percentage") => percentage(shared, name, rest),
        name if name.contains("mem_limit") => limit(shared, name, rest),
        name if name.contains("priority") => priority(shared, name, rest),
        name => about_servers(shared, name, rest),
    }
}

fn about_servers(shared: &Shared, name: &str, rest: &[&str]) -> Answer {
    let mut daemon = locked(shared);
    daemon.servers.retain_mut(|s| s.runs());
    let named = rest.first().and_then(|pid| pid.parse::<u32>().ok());
    let unknown = || refused(format!("Server {} not found", rest.first().unwrap_or(&"")));
    match name {
        "get_server_list" => lines(daemon.servers.iter().map(|s| s.pid().to_string())),
        "get_server_status" => match named.and_then(|pid| daemon.server(pid)) {
            Some(server) => said(format!("{}\n", server.status())),
            None => unknown(),
        },
        "get_client_list" => match named.and_then(|pid| daemon.server(pid)) {
            Some(server) => lines(server.clients.iter().map(|c| c.pid.to_string())),
            None => unknown(),
        },
        "get_device_client_list" => {
            let device = daemon.devices.first().map_or(String::new(), |d| d.uuid.clone());
            let of = |s: &&super::server::Server| named.is_none_or(|pid| s.pid() == pid);
            let pids: Vec<String> =
                daemon.servers.iter().filter(of).flat_map(|s| &s.clients).map(|c| c.pid.to_string()).collect();
            lines(std::iter::once(format!("Device {device}")).chain(pids))
        }
        _ => refused(format!("Unrecognized command: {name}")),
    }
}

fn list(shared: &Shared) -> Answer {
    let daemon = locked(shared);
    let device = daemon.devices.first().map_or(String::new(), |d| d.uuid.chars().take(12).collect());
    let header = format!("{:<8}{:<6}{:<10}{:<16}{:<12}{}", "PID", "ID", "SERVER", "DEVICE", "NAMESPACE", "COMMAND");
    let rows = daemon.servers.iter().flat_map(|s| s.clients.iter().map(move |c| (s.pid(), c)));
    let rows = rows.map(|(server, c)| {
        let command = system_name(c.pid);
        format!("{:<8}{:<6}{server:<10}{device:<16}{:<12}{command}", c.pid, c.id, 4_026_531_836_u64)
    });
    lines(std::iter::once(header).chain(rows))
}

fn start(shared: &Shared, rest: &[&str]) -> Answer {
    let uid = match rest {
        ["-uid", uid] => uid.parse().ok(),
        _ => None,
    };
    let Some(uid) = uid else { return refused("Usage: start_server -uid UID") };
    match locked(shared).server_for(uid) {
        Ok(_) => said(""),
        Err(why) => refused(why),
    }
}

fn percentage(shared: &Shared, name: &str, rest: &[&str]) -> Answer {
    let mut daemon = locked(shared);
    let number = |text: Option<&&str>| text.and_then(|t| t.parse::<f64>().ok()).filter(|p| *p > 0.0 && *p <= 100.0);
    let server = |text: Option<&&str>| text.and_then(|t| t.parse::<u32>().ok());
    let shown = |percent: f64| said(format!("{percent:.1}\n"));
    match name {
        "get_default_active_thread_percentage" => shown(daemon.percent),
        "set_default_active_thread_percentage" => match number(rest.first()) {
            Some(percent) => {
                daemon.percent = percent;
                shown(percent)
            }
            None => refused("Invalid active thread percentage"),
        },
        "get_active_thread_percentage" | "set_active_thread_percentage" => {
            let wanted = number(rest.get(1));
            match server(rest.first()).and_then(|pid| daemon.server(pid)) {
                Some(server) => {
                    if name.starts_with("set") {
                        server.percent = wanted.unwrap_or(server.percent);
                    }
                    shown(server.percent)
                }
                None => refused("Server not found"),
            }
        }
        _ => refused(format!("Unrecognized command: {name}")),
    }
}

fn limit(shared: &Shared, name: &str, rest: &[&str]) -> Answer {
    let mut daemon = locked(shared);
    if name.starts_with("get") && daemon.sim.scenario.has("mps-no-readback") {
        return refused("Failed to get the device pinned memory limit");
    }
    let number = |i: usize| rest.get(i).and_then(|t| t.parse::<usize>().ok());
    let shown = |limits: &[(usize, u64)], device: usize| {
        let found = limits.iter().find(|(at, _)| *at == device);
        said(found.map_or("0\n".to_string(), |(_, bytes)| format!("{}M\n", bytes >> 20)))
    };
    match (name, number(0), number(1)) {
        ("get_default_device_pinned_mem_limit", Some(device), _) => shown(&daemon.limits, device),
        ("set_default_device_pinned_mem_limit", Some(device), _) => {
            let text = rest.get(1).copied().unwrap_or("");
            if set_limit(&mut daemon.limits, device, text) { said("") } else { refused("Invalid memory limit") }
        }
        ("get_device_pinned_mem_limit", Some(server), Some(device)) => match daemon.server(server as u32) {
            Some(server) => shown(&server.limits, device),
            None => refused("Server not found"),
        },
        ("set_device_pinned_mem_limit", Some(server), Some(device)) => {
            let text = rest.get(2).copied().unwrap_or("");
            match daemon.server(server as u32) {
                Some(server) if size_bytes(text).is_some() => {
                    set_limit(&mut server.limits, device, text);
                    said("")
                }
                _ => refused("Server not found"),
            }
        }
        _ => refused(format!("Unrecognized command: {name}")),
    }
}

fn priority(shared: &Shared, name: &str, rest: &[&str]) -> Answer {
    let mut daemon = locked(shared);
    match (name, rest.first().and_then(|p| p.parse::<u32>().ok())) {
        ("get_default_client_priority", _) => said(format!("{}\n", daemon.priority)),
        ("set_default_client_priority", Some(priority @ 0..=1)) => {
            daemon.priority = priority;
            said("")
        }
        _ => refused("Invalid client priority"),
    }
}

fn terminate(shared: &Shared, rest: &[&str]) -> Answer {
    let pids: Vec<u32> = rest.iter().filter_map(|w| w.parse().ok()).collect();
    let [server, client] = pids[..] else { return refused("Usage: terminate_client SERVER CLIENT") };
    let there = |shared: &Shared| locked(shared).server(server).is_some_and(|s| s.clients.iter().any(|c| c.pid == client));
    if !locked(shared).server(server).is_some_and(|s| s.terminate(client)) {
        return refused("1");
    }
    let began = Instant::now();
    while there(shared) && began.elapsed() < PATIENCE {
        std::thread::sleep(LOOK);
    }
    if there(shared) { refused("1") } else { said("0\n") }
}

fn shutdown(shared: &Shared, rest: &[&str]) -> Answer {
    let Some(pid) = rest.first().and_then(|p| p.parse::<u32>().ok()) else { return refused("Usage: shutdown_server PID [-f]") };
    if locked(shared).server(pid).is_none() {
        return refused(format!("Server {pid} not found"));
    }
    let forced = rest.contains(&"-f");
    if let Some(server) = locked(shared).server(pid).filter(|_| forced) {
        server.terminate_all();
    }
    while locked(shared).server(pid).is_some_and(|s| !s.clients.is_empty()) {
        std::thread::sleep(LOOK);
    }
    let mut daemon = locked(shared);
    daemon.servers.retain(|s| s.pid() != pid);
    daemon.note("Control", &format!("Server {pid} exited with status 0"));
    said("")
}

fn quit(shared: &Shared, timeout_s: Option<f64>) -> Answer {
    let hangs = {
        let mut daemon = locked(shared);
        daemon.leaving = true;
        daemon.sim.scenario.has("mps-hang")
    };
    let began = Instant::now();
    let busy = || locked(shared).servers.iter().any(|s| !s.clients.is_empty());
    let mut forced = false;
    while hangs || busy() {
        let late = timeout_s.is_some_and(|t| began.elapsed().as_secs_f64() >= t);
        if late && !hangs && !forced {
            forced = true;
            locked(shared).servers.iter().for_each(|s| s.terminate_all());
        }
        if forced && timeout_s.is_some_and(|t| began.elapsed().as_secs_f64() >= t + 2.0) {
            break;
        }
        std::thread::sleep(LOOK);
    }
    let pids: Vec<u32> = locked(shared).servers.iter().map(|s| s.pid()).collect();
    locked(shared).servers.clear();
    pids.iter().for_each(|pid| locked(shared).note("Control", &format!("Server {pid} exited with status 0")));
    (0, String::new(), true)
}
