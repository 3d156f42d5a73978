//! The commands of the control daemon.
//!
//! In: a line as typed. Out: its answer, in the words of NVIDIA's programs (`tests/vendor.rs` compares them).

use std::time::{Duration, Instant};

use nix::unistd::getuid;

use super::daemon::{Daemon, Shared, locked, set_limit, timeout};
use super::system_name;

const LOOK: Duration = Duration::from_millis(10);
/// How long `terminate_client` waits for the client.
const PATIENCE: Duration = Duration::from_secs(5);

/// The answer to a command.
#[derive(Debug, Default)]
pub struct Reply {
    /// What is printed, and logged.
    pub text: String,
    /// What is logged alone, before it.
    pub noted: Vec<String>,
    /// The daemon ends with this status.
    pub ends_with: Option<i32>,
}

fn said(text: impl Into<String>) -> Reply {
    Reply { text: text.into(), ..Reply::default() }
}

fn line(text: impl std::fmt::Display) -> Reply {
    said(format!("{text}\n"))
}

fn lines(items: impl Iterator<Item = String>) -> Reply {
    said(items.map(|item| item + "\n").collect::<String>())
}

fn unknown(command: &str) -> Reply {
    line(format_args!("Unknown command \"{command}\""))
}

/// An invalid pid counts as 0.
fn not_found(server: Option<&&str>) -> Reply {
    line(format_args!("Server {} not found", server.and_then(|pid| pid.parse::<u32>().ok()).unwrap_or(0)))
}

/// Do what a line says.
pub fn answer(shared: &Shared, text: &str) -> Reply {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (name, rest) = words.split_first().map_or(("", &[][..]), |(name, rest)| (*name, rest));
    match name {
        "quit" => quit(shared, timeout(rest)),
        "shutdown_server" => shutdown(shared, rest),
        "terminate_client" => terminate(shared, rest),
        "start_server" => start(shared, rest),
        "ps" => list(shared),
        _ if name.contains("percentage") => percentage(shared, name, rest),
        _ if name.contains("mem_limit") => limit(shared, name, rest),
        _ if name.contains("priority") => priority(shared, name, rest),
        _ => about_servers(shared, name, rest),
    }
}

fn about_servers(shared: &Shared, name: &str, rest: &[&str]) -> Reply {
    let mut daemon = locked(shared);
    daemon.servers.retain_mut(|s| s.runs());
    let named = rest.first().and_then(|pid| pid.parse::<u32>().ok());
    match name {
        "get_server_list" => lines(daemon.servers.iter().map(|s| s.pid().to_string())),
        "get_server_status" if daemon.dialect.has_server_status() => match named.and_then(|pid| daemon.server(pid)) {
            Some(server) => line(server.status()),
            None => not_found(rest.first()),
        },
        "get_client_list" => match named.and_then(|pid| daemon.server(pid)) {
            Some(server) => lines(server.clients.iter().map(|c| c.pid.to_string())),
            None => not_found(rest.first()),
        },
        "get_device_client_list" => {
            let device = daemon.devices.first().map_or(String::new(), |d| d.uuid.clone());
            let of = |s: &&super::server::Server| named.is_none_or(|pid| s.pid() == pid);
            let pids: Vec<String> =
                daemon.servers.iter().filter(of).flat_map(|s| &s.clients).map(|c| c.pid.to_string()).collect();
            if daemon.servers.is_empty() { said("") } else { lines(std::iter::once(format!("Device {device}")).chain(pids)) }
        }
        _ => unknown(name),
    }
}

fn list(shared: &Shared) -> Reply {
    let daemon = locked(shared);
    if daemon.servers.is_empty() {
        return line("Server not found");
    }
    let device = daemon.devices.first().map_or(String::new(), |d| d.uuid.chars().take(12).collect());
    let header = format!("{:<8}{:<6}{:<10}{:<16}{:<12}{}", "PID", "ID", "SERVER", "DEVICE", "NAMESPACE", "COMMAND");
    let rows = daemon.servers.iter().flat_map(|s| s.clients.iter().map(move |c| (s.pid(), c)));
    let rows = rows.map(|(server, c)| {
        let command = system_name(c.pid);
        format!("{:<8}{:<6}{server:<10}{device:<16}{:<12}{command}", c.pid, c.id, 4_026_531_836_u64)
    });
    lines(std::iter::once(header).chain(rows))
}

/// It answers before the server serves, and prints nothing of a server that then fails: that stands in the log.
fn start(shared: &Shared, rest: &[&str]) -> Reply {
    let uid: Option<u32> = match rest {
        ["-uid", uid] => uid.parse().ok(),
        _ => None,
    };
    let Some(uid) = uid else { return line("A user id (UID) is required to start a new server") };
    let mut daemon = locked(shared);
    let own = getuid();
    if !own.is_root() && own.as_raw() != uid {
        return line(daemon.dialect.insufficient_privileges(own.as_raw()));
    }
    let Some(seconds) = daemon.sim.scenario.duration_s("mps-server-slow") else {
        let _ = daemon.server_for(uid);
        return said("");
    };
    let shared = shared.clone();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs_f64(seconds));
        let _ = locked(&shared).server_for(uid);
    });
    said("")
}

/// A percentage as it may be set.
pub fn percent(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|p| *p > 0.0 && *p <= 100.0)
}

fn percentage(shared: &Shared, name: &str, rest: &[&str]) -> Reply {
    let mut daemon = locked(shared);
    let shown = |percent: f64| line(format_args!("{percent:.1}"));
    let invalid = |shown: Reply| Reply { noted: vec!["Invalid percentage, expected between (0.0, 100.0]".into()], ..shown };
    let named = rest.first().and_then(|pid| pid.parse::<u32>().ok());
    match name {
        "get_default_active_thread_percentage" => shown(daemon.percent),
        "set_default_active_thread_percentage" => match rest.first().and_then(|text| percent(text)) {
            Some(percent) => {
                daemon.percent = percent;
                shown(percent)
            }
            None => invalid(shown(daemon.percent)),
        },
        "get_active_thread_percentage" => match named.and_then(|pid| daemon.server(pid)) {
            Some(server) => shown(server.percent),
            None => not_found(rest.first()),
        },
        "set_active_thread_percentage" => match named.and_then(|pid| daemon.server(pid)) {
            Some(server) => match rest.get(1).and_then(|text| percent(text)) {
                Some(percent) => {
                    server.percent = percent;
                    shown(percent)
                }
                None => invalid(shown(server.percent)),
            },
            None => not_found(rest.first()),
        },
        _ => unknown(name),
    }
}

/// A limit as the daemon reports it: in whole GiB from one on, the rest cut off.
fn reported(bytes: u64) -> String {
    if bytes >> 30 > 0 { format!("{}G", bytes >> 30) } else { format!("{}M", bytes >> 20) }
}

fn limit(shared: &Shared, name: &str, rest: &[&str]) -> Reply {
    let mut daemon = locked(shared);
    let number = |i: usize| rest.get(i).and_then(|t| t.parse::<usize>().ok());
    let find = |limits: &[(usize, u64)], device: usize| limits.iter().find(|(at, _)| *at == device).map(|(_, bytes)| *bytes);
    match name {
        "get_default_device_pinned_mem_limit" => match find(&daemon.set_by_command, number(0).unwrap_or(0)) {
            Some(bytes) => line(reported(bytes)),
            None => Reply { noted: vec!["No default pinned memory limit set for the device!".into()], ..Reply::default() },
        },
        "set_default_device_pinned_mem_limit" => {
            let Daemon { limits, set_by_command, .. } = &mut *daemon;
            if let (Some(device), Some(text)) = (number(0), rest.get(1)) {
                for list in [limits, set_by_command] {
                    set_limit(list, device, text);
                }
            }
            said("")
        }
        "get_device_pinned_mem_limit" | "set_device_pinned_mem_limit" => {
            let Some(server) = number(0).and_then(|pid| daemon.server(pid as u32)) else { return not_found(rest.first()) };
            let device = number(1).unwrap_or(0);
            if let Some(text) = rest.get(2).filter(|_| name.starts_with("set")) {
                set_limit(&mut server.limits, device, text);
                return said("");
            }
            find(&server.limits, device).map_or(said(""), |bytes| line(reported(bytes)))
        }
        _ => unknown(name),
    }
}

fn priority(shared: &Shared, name: &str, rest: &[&str]) -> Reply {
    let mut daemon = locked(shared);
    match (name, rest.first().and_then(|p| p.parse::<u32>().ok())) {
        ("get_default_client_priority", _) => line(daemon.priority),
        ("set_default_client_priority", Some(priority @ 0..=1)) => {
            daemon.priority = priority;
            said("")
        }
        ("set_default_client_priority", _) => line("Invalid priority value - must be 0 or 1!"),
        _ => unknown(name),
    }
}

fn terminate(shared: &Shared, rest: &[&str]) -> Reply {
    let pid = |i: usize| rest.get(i).and_then(|w| w.parse::<u32>().ok()).unwrap_or(0);
    let (server, client) = (pid(0), pid(1));
    if locked(shared).server(server).is_none() {
        return said(format!("Server {server} not found\nServer {server} not found!\n1\n"));
    }
    let there = |shared: &Shared| locked(shared).server(server).is_some_and(|s| s.clients.iter().any(|c| c.pid == client));
    if !locked(shared).server(server).is_some_and(|s| s.terminate(client)) {
        return line(1);
    }
    let began = Instant::now();
    while there(shared) && began.elapsed() < PATIENCE {
        std::thread::sleep(LOOK);
    }
    line(u8::from(there(shared)))
}

fn shutdown(shared: &Shared, rest: &[&str]) -> Reply {
    let named = rest.first().and_then(|p| p.parse::<u32>().ok());
    let Some(pid) = named.filter(|pid| locked(shared).server(*pid).is_some()) else { return not_found(rest.first()) };
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

fn quit(shared: &Shared, timeout_s: Option<f64>) -> Reply {
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
    let failed = locked(shared).failed;
    Reply { ends_with: Some(failed.into()), ..Reply::default() }
}
