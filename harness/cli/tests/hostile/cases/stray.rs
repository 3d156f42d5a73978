//! Files that lie where experiments and workloads do, and command lines: nobody may hang on them, and the rest must work.

use std::os::unix::fs::symlink;
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::hostile::case::{Case, Check, case, end_of, ended, hold};
use crate::hostile::scene::Scene;

pub const KIND: &str = "stray files, command lines";
pub const MODE: Mode = Mode::S_IRWXU;

/// With this in the way, experiment `x` is planned, listed and run all the same.
fn beside(name: &str, put: impl Fn(&Scene) -> Check + Send + Sync + 'static) -> Case {
    case(KIND, name).before(put).looks(|scene, _| {
        for arguments in
            [&["plan", "x"][..], &["list", "experiments"], &["list", "workloads"], &["workload", "show", "sleep"], &["status"]]
        {
            verb(scene, arguments, &[0, 4])?;
        }
        Ok(())
    })
}

pub fn verb(scene: &Scene, arguments: &[&str], codes: &[i32]) -> Check {
    let called = format!("`collo {}`", arguments.join(" ").chars().take(80).collect::<String>());
    let said = scene.collo(arguments, Duration::from_secs(30)).map_err(|e| format!("{called}: {e}"))?;
    ended(&said).map_err(|e| format!("{called}: {e}"))?;
    hold(codes.contains(&said.code), || format!("{called} ended with {}, not {codes:?}\n{}", said.code, end_of(&said)))
}

/// Every one of these command lines is refused.
fn refused(name: &str, lines: &'static [&'static [&'static str]]) -> Case {
    case(KIND, name).act(|scene| lines.iter().try_for_each(|arguments| verb(scene, arguments, &[1, 2, 3])))
}

fn io<T>(result: std::io::Result<T>) -> Check {
    result.map(|_| ()).map_err(|e| e.to_string())
}

/// An archive that these lines of Python write to `out` is no bundle to any verb: that is said in a few lines, and little is unpacked.
fn no_bundle(name: &str, python: &'static str) -> Case {
    const BEFORE: &str = "import gzip, io, sys, tarfile\nout = gzip.open(sys.argv[1], 'wb', 1)\n";
    let under = "ulimit -f 8192";
    case(KIND, name).under(under).act(move |scene| {
        let mut made = std::process::Command::new("python3");
        made.arg("-c").arg(format!("{BEFORE}{python}out.close()\n")).arg(scene.at("evil.tar.gz"));
        hold(made.status().is_ok_and(|status| status.success()), || "the archive cannot be made".into())?;
        ["show", "verify", "report", "run"].into_iter().try_for_each(|word| {
            let said = scene.collo(&[word, "evil.tar.gz"], Duration::from_secs(30))?;
            ended(&said).map_err(|e| format!("{word}: {e}"))?;
            hold(said.code == 2, || format!("`{word}` ended with {}\n{}", said.code, end_of(&said)))?;
            hold(said.stderr.len() < 2_000, || format!("`{word}` says {} characters", said.stderr.len()))
        })
    })
}

pub fn cases() -> Vec<Case> {
    bundles().into_iter().chain(others()).collect()
}

fn bundles() -> Vec<Case> {
    vec![
        no_bundle(
            "bundle_with_a_name_of_a_hundred_megabytes",
            "info = tarfile.TarInfo('././@LongLink')\ninfo.type, info.size = b'L', 100 << 20\nout.write(info.tobuf(tarfile.GNU_FORMAT))\n\
             for _ in range(100): out.write(b'a' * (1 << 20))\nout.write(tarfile.TarInfo('x').tobuf(tarfile.GNU_FORMAT))\n",
        )
        .sample(),
        no_bundle(
            "bundle_with_a_header_of_a_hundred_megabytes",
            "info = tarfile.TarInfo('x')\ninfo.type, info.size = b'x', 100 << 20\nout.write(info.tobuf(tarfile.USTAR_FORMAT))\n\
             out.write(b'104857600 path=' + b'a' * ((100 << 20) - 16) + b'\\n')\n\
             out.write(tarfile.TarInfo('x').tobuf(tarfile.USTAR_FORMAT))\n",
        ),
        no_bundle(
            "bundle_that_unpacks_to_more_than_it_names",
            "with tarfile.open(fileobj=out, mode='w') as all:\n\
             \x20   for name, size in [('x/collo-bundle.json', 2), ('x/zeros', 64 << 20)]:\n\
             \x20       info = tarfile.TarInfo(name)\n\
             \x20       text = b'{\"schema\": 1, \"files\": {\"zeros\": {\"bytes\": 9, \"sha256\": \"\"}}}' if size == 2 else bytes(size)\n\
             \x20       info.size = len(text)\n\
             \x20       all.addfile(info, io.BytesIO(text))\n",
        ),
    ]
}

fn others() -> Vec<Case> {
    let huge = |name: &'static str| {
        move |scene: &Scene| {
            fs_err::create_dir_all(scene.at(name).parent().expect("in the project")).map_err(|e| e.to_string())?;
            io(fs_err::File::create(scene.at(name)).and_then(|file| file.set_len(1 << 30)))
        }
    };
    vec![
        beside("experiment_is_a_fifo", |s| io(mkfifo(&s.at("experiments/y.toml"), MODE).map_err(Into::into))).sample(),
        beside("experiment_is_endless", |s| io(symlink("/dev/zero", s.at("experiments/y.toml")))),
        beside("experiment_is_a_folder", |s| io(fs_err::create_dir(s.at("experiments/y.toml")))),
        beside("experiment_is_a_dangling_link", |s| io(symlink("nowhere", s.at("experiments/y.toml")))),
        beside("experiment_is_a_gigabyte", huge("experiments/y.toml")),
        beside("experiments_link_to_themselves", |s| io(symlink(".", s.at("experiments/y")))),
        beside("workload_is_a_fifo", |s| {
            fs_err::create_dir(s.at("workloads/y")).map_err(|e| e.to_string())?;
            io(mkfifo(&s.at("workloads/y/workload.toml"), MODE).map_err(Into::into))
        }),
        beside("workload_is_a_gigabyte", huge("workloads/y/workload.toml")),
        beside("workload_is_nonsense", |s| {
            s.write("workloads/y/workload.toml", "command = [\"\u{0}\"]]]\n");
            Ok(())
        }),
        beside("workloads_link_to_themselves", |s| io(symlink("..", s.at("workloads/y")))),
        refused(
            "experiments_that_are_none",
            &[
                &["run", "nothing"],
                &["run", "../../etc/passwd"],
                &["run", ""],
                &["run", "/dev/zero"],
                &["plan", "x", "--where", "((((((((((((((((((((((("],
                &["plan", "x", "--where", "degree <= "],
                &["run", "x", "--for", "-1s"],
                &["run", "x", "--for", "99999999999999999999h"],
            ],
        ),
        refused(
            "campaigns_that_are_none",
            &[
                &["show", "../../../etc"],
                &["show", "last-99999999999999999999"],
                &["verify", ""],
                &["report", "/"],
                &["compare", "last", "/dev/null"],
                &["prune", "--keep", "-1"],
            ],
        ),
    ]
}
