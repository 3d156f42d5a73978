//! Anonymises texts: names, paths and numbers that identify the machine or its users are replaced, the same way each time.
//!
//! In: texts as programs print them. Out: the same texts, in which hosts, users, paths, UUIDs and serial numbers can still be
//! distinguished, but no longer recognised. UUIDs keep their form, so that they parse the same everywhere.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use regex::{Captures, Regex};

/// Paths that identify nobody.
const PUBLIC: [&str; 12] = [
    "/usr/",
    "/dev/",
    "/proc/",
    "/sys/",
    "/lib/",
    "/lib64/",
    "/bin/",
    "/sbin/",
    "/etc/nvidia",
    "/var/log/nvidia",
    "/run/nvidia",
    "/tmp/collo-mps-",
];
/// Programs that may be named in a list of processes: they belong to the driver.
const PROGRAMS: [&str; 7] = [
    "nvidia-cuda-mps-server",
    "nvidia-cuda-mps-control",
    "nv-hostengine",
    "nvidia-persistenced",
    "nv-fabricmanager",
    "dcgm-exporter",
    "nvsm_core",
];

/// What stands for a text that a pattern has found.
type Replace = fn(&Mask, &Captures<'_>) -> String;

/// In this order; names of the machine and its users come last.
const RULES: [(&str, Replace); 5] = [
    // What is behind `Serial Number :` and its like.
    (r"(?mi)^(\s*[^:\n]*(?:serial|guid|pdi|host id)[^:\n]*:\s*)(\S.*)$", |mask, c| match c[2].trim() {
        none @ ("N/A" | "0" | "None") => format!("{}{none}", &c[1]),
        secret => format!("{}{}", &c[1], &mask.hash(secret)[..12]),
    }),
    // The last word of a path is a program; whatever is behind it are arguments of somebody.
    (r"(?m)^(\s+Name\s+: )(\S+)(.*)$", |_, c| {
        let program = c[2].rsplit('/').next().unwrap_or_default();
        format!("{}{}", &c[1], if PROGRAMS.contains(&program) { program } else { "a process" })
    }),
    (r"(?i)\b([0-9a-f]{8})(-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\b", |mask, c| mask.as_uuid(&c[1], &c[0])),
    // The full ones have been replaced, and so they are met again here: their first part stays what it is.
    (r"\b(GPU|MIG)-([0-9a-f]{8})\b", |mask, c| match mask.is_ours(&c[2]) {
        true => c[0].to_string(),
        false => format!("{}-{}", &c[1], mask.first(&c[2])),
    }),
    // A path begins where a word does, also behind the `\n` of a text in JSON: `3/4` and `dcgm/a.txt` are none.
    (r#"(?m)(^|[\s"'`=:,;(\[|]|\\[nt])(/[^\s"'`:,;()\[\]|<>{}\\]*[^\s"'`:,;()\[\]|<>{}\\.])"#, |mask, c| {
        format!("{}{}", &c[1], mask.as_path(&c[2]))
    }),
];

/// What has to be masked here.
pub struct Mask {
    /// Different each time, so that numbers cannot be found by trial.
    salt: String,
    rules: Vec<(Regex, Replace)>,
    /// Names of this machine and its users, with their replacements.
    names: BTreeMap<String, String>,
    /// Paths seen so far, in order.
    paths: Mutex<Vec<String>>,
}

impl Mask {
    /// For the names of this machine.
    pub fn here(salt: String) -> Result<Mask, regex::Error> {
        let host = nix::unistd::gethostname().map(|h| h.to_string_lossy().into_owned()).unwrap_or_default();
        let mut hosts = vec![host.clone()];
        hosts.extend(host.split_once('.').map(|(short, _)| short.to_string()));
        Mask::of(salt, &hosts, &users())
    }

    fn of(salt: String, hosts: &[String], users: &[String]) -> Result<Mask, regex::Error> {
        // Two letters may be a word of any text.
        let long = |name: &&String| name.len() > 2;
        let numbered = |what: &str, names: &[String]| {
            names.iter().filter(long).enumerate().map(|(i, n)| (n.clone(), format!("{what}-{}", i + 1))).collect::<Vec<_>>()
        };
        let names: BTreeMap<String, String> = numbered("host", hosts).into_iter().chain(numbered("user", users)).collect();
        let mut longest: Vec<String> = names.keys().map(|n| regex::escape(n)).collect();
        longest.sort_by_key(|n| std::cmp::Reverse(n.len()));
        let replace: Replace = |mask, c| mask.names[&c[0]].clone();
        let of_names = (!longest.is_empty()).then(|| (format!(r"\b(?:{})\b", longest.join("|")), replace));
        let rules = RULES.map(|(pattern, replace)| (pattern.to_string(), replace)).into_iter().chain(of_names);
        let rules = rules.map(|(pattern, replace)| Ok((Regex::new(&pattern)?, replace))).collect::<Result<_, regex::Error>>()?;
        Ok(Mask { salt, rules, names, paths: Mutex::new(Vec::new()) })
    }

    /// The text without anything that identifies the machine or its users.
    pub fn text(&self, text: &str) -> String {
        self.rules.iter().fold(text.to_string(), |text, (pattern, replace)| {
            pattern.replace_all(&text, |c: &Captures<'_>| replace(self, c)).into_owned()
        })
    }

    fn hash(&self, text: &str) -> String {
        collo_store::sha256_text(&format!("{}{text}", self.salt))
    }

    /// The first part of a UUID, which also occurs alone. Its last digits mark it as made here.
    fn first(&self, digits: &str) -> String {
        format!("{}{}", &self.hash(&digits.to_lowercase())[..5], &self.mark())
    }

    fn mark(&self) -> String {
        self.hash("mark")[..3].to_string()
    }

    fn is_ours(&self, digits: &str) -> bool {
        digits.ends_with(&self.mark())
    }

    fn as_uuid(&self, first: &str, whole: &str) -> String {
        let h = self.hash(&whole.to_lowercase());
        format!("{}-{}-{}-{}-{}", self.first(first), &h[..4], &h[4..8], &h[8..12], &h[12..24])
    }

    fn as_path(&self, path: &str) -> String {
        // A unit such as `/s` is no folder.
        if path.len() < 4 || PUBLIC.iter().any(|public| path.starts_with(public)) {
            return path.into();
        }
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        let at = paths.iter().position(|p| p == path).unwrap_or_else(|| {
            paths.push(path.into());
            paths.len() - 1
        });
        format!("/path-{}", at + 1)
    }
}

/// Users of this machine: people's accounts, and the user running this.
fn users() -> Vec<String> {
    let passwd = fs_err::read_to_string("/etc/passwd").unwrap_or_default();
    let person = |line: &str| {
        let mut fields = line.split(':');
        let (name, uid) = (fields.next()?, fields.nth(1)?.parse::<u32>().ok()?);
        (uid >= 1000 && name != "nobody").then(|| name.to_string())
    };
    let mut all: Vec<String> = passwd.lines().filter_map(person).collect();
    let own = ["USER", "LOGNAME", "SUDO_USER"].iter().filter_map(|name| std::env::var(name).ok()).filter(|name| name != "root");
    all.extend(own);
    // Accounts of a directory are in no file: whoever runs something here has one.
    let owner = |entry: std::fs::DirEntry| {
        use std::os::unix::fs::MetadataExt;
        let uid = entry.metadata().ok()?.uid();
        let user = nix::unistd::User::from_uid(uid.into()).ok().flatten()?;
        (uid >= 1000 && user.name != "nobody").then_some(user.name)
    };
    all.extend(std::fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(owner));
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask() -> Mask {
        Mask::of("salt".into(), &["dgx-7.lab.example".into(), "dgx-7".into()], &["alice".into()]).expect("patterns")
    }

    #[test]
    fn names_of_the_machine_and_its_people_are_hidden_and_stay_apart() {
        let said = mask().text("on dgx-7.lab.example, alice and malice of dgx-7 in /home/alice/secret and /home/alice/other");
        assert_eq!(said, "on host-1, user-1 and malice of host-2 in /path-1 and /path-2");
        assert_eq!(mask().text(r#"{"said": "no\n/home/alice/x"}"#), r#"{"said": "no\n/path-1"}"#);
        let again = mask();
        assert_eq!(again.text("/srv/a /srv/b"), "/path-1 /path-2");
        assert_eq!(again.text("/srv/b"), "/path-2", "the same each time");
    }

    #[test]
    fn a_uuid_stays_one_and_its_beginning_fits_it() {
        let mask = mask();
        let one = mask.text("GPU-2f6e1b0a-1234-5678-9abc-def012345678");
        assert!(Regex::new("^GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$").expect("right").is_match(&one));
        assert!(!one.contains("2f6e1b0a") && !one.contains("def012345678"), "{one}");
        assert_eq!(mask.text("GPU-2f6e1b0a-1234-5678-9abc-def012345678"), one);
        assert_eq!(mask.text("GPU-2f6e1b0a"), one[..12], "as `ps` of MPS prints it");
        assert_ne!(mask.text("GPU-2f6e1b0a-1234-5678-9abc-def012345679"), one);
        assert_eq!(mask.text(&one), mask.text(&one), "and what is masked twice is no more than that");
    }

    #[test]
    fn serial_numbers_and_what_others_run_are_hidden() {
        let said = mask().text(
            "    Product Name  : NVIDIA H100\n    Serial Number                         : 1653123456789\n\
             \x20   GPU PDI                               : 0x0a1b2c3d\n    Serial Number : N/A\n    Processes\n\
             \x20       Process ID                        : 9\n            Name                          : /opt/x/train.py --key=s3cret\n\
             \x20           Name                          : nvidia-cuda-mps-server\n",
        );
        for secret in ["1653123456789", "0a1b2c3d", "s3cret", "train.py", "/opt"] {
            assert!(!said.contains(secret), "{secret} in {said}");
        }
        assert!(said.contains("Product Name  : NVIDIA H100") && said.contains("Serial Number : N/A"), "{said}");
        assert!(
            said.contains("Name                          : nvidia-cuda-mps-server") && said.contains(": a process"),
            "{said}"
        );
    }

    #[test]
    fn what_says_nothing_of_anybody_stays() {
        let text =
            "/dev/nvidia0 /usr/bin/nvidia-smi 16 GiB/s 1/2 [2026-11-20 18:42:09.123 Control 9] socket /tmp/collo-mps-x/control";
        assert_eq!(mask().text(text), text);
    }
}
