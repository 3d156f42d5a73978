//! What company costs is fitted and scored: on tables that others measured, and on campaigns.

use collo_text::quoting::line;
use serde_json::Value;

use crate::sim::Machine;
use crate::support::Bench;

/// Six families of three batch sizes, as solo profiles: seconds of a run of 1000 steps, SMACT, utilisation, memory.
fn profiles() -> String {
    let mut text = "# solo profiles, made up\nkey,solo_s,gpu_utilisation_percent,sm_active_ratio,memory_mib,steps\n".to_string();
    for family in 0..6_u32 {
        for (place, batch) in [32_u32, 64, 128].into_iter().enumerate() {
            let (_, step_s, compute, busy) = alone(family, place);
            let name = char::from(b'a' + family as u8);
            text += &format!(
                "{name}net{batch},{},{},{compute},{},1000\n",
                1000.0 * step_s,
                100.0 * busy,
                800 + 900 * family * batch / 32
            );
        }
    }
    text
}

fn alone(family: u32, place: usize) -> (u32, f64, f64, f64) {
    let (f, p) = (f64::from(family), place as f64);
    (family, 0.02 * (1.0 + f * f) * (1.0 + p), 0.12 + 0.14 * f, 0.3 + 0.11 * f)
}

/// Times of whole runs by the law, with some percent that it does not know; the shorter ends first.
fn pairs() -> String {
    let mut text = "# pairs, made up\npair_a_s,pair_b_s,a,b,solo_a_s,solo_b_s\n".to_string();
    let mut number = 0_u32;
    for a in 0..6 {
        for b in a + 1..6 {
            for place in 0..2 {
                let members = [alone(a, place), alone(b, place + 1)];
                let sum = |of: fn(&(u32, f64, f64, f64)) -> f64| members.iter().map(of).sum::<f64>();
                let over = 0.3 * (sum(|m| m.2) - 0.95).max(0.0) + 0.2 * (sum(|m| m.3) - 1.0).max(0.0);
                let slowdown = [0, 1].map(|i| {
                    number += 1;
                    let odd = 0.03 * (f64::from(number * 7 % 11) / 10.0 - 0.5);
                    (0.2 * members[1 - i].2 * (1.0 + members[1 - i].1 / members[i].1).ln() + over + odd).exp()
                });
                let solo = members.map(|m| 1000.0 * m.1);
                let whole = [solo[0] * slowdown[0], solo[1] * slowdown[1]];
                let longer = usize::from(whole[1] > whole[0]);
                let mut pair = whole;
                pair[longer] = whole[1 - longer] + solo[longer] - whole[1 - longer] / slowdown[longer];
                let name = |family: u32, place: usize| format!("{}net{}", char::from(b'a' + family as u8), 32 << place);
                text +=
                    &format!("{:.3},{:.3},{},{},{},{}\n", pair[0], pair[1], name(a, place), name(b, place + 1), solo[0], solo[1]);
            }
        }
    }
    text
}

fn bench() -> Bench {
    Bench::new().file("pairs.csv", &pairs()).file("profiles.csv", &profiles())
}

fn of<'v>(answer: &'v Value, estimator: &str) -> &'v Value {
    let all = answer["measured"][0]["estimators"].as_array().expect("a list");
    all.iter().find(|one| one["estimator"].as_str().is_some_and(|name| name.contains(estimator))).expect("there")
}

#[test]
fn pairs_that_others_measured_are_fitted_and_score_other_pairs() {
    let bench = bench();
    let fit =
        bench.collo(&["predict", "fit", "--describe", "pairs.csv", "profiles.csv", "--to", "predictors/mine.json"]).exits(0);
    let fit = fit.answers("company, fitted on table measurements").answers("every family of the group left out");
    fit.says("the time in which one trained alone is taken out");
    let mine = bench.collo(&["predict", "show", "mine", "--json"]).exits(0).json();
    let law = &mine["law"]["unrecorded"]["law"];
    assert!((law["per_longer_step"].as_f64().expect("a number") - 0.2).abs() < 0.03, "{law}");
    assert_eq!((&mine["quantity"], &mine["law"]["unrecorded"]["most_members"]), (&"company".into(), &2.into()));
    bench.collo(&["predict", "list"]).exits(0).answers("mine").answers("published-a100-company").answers("company");
    let left_out = bench.collo(&["predict", "evaluate", "--describe", "pairs.csv", "profiles.csv", "--json"]).exits(0).json();
    assert!(of(&left_out, "law, every family")["gain_median_error"].as_f64() < Some(0.02), "{left_out}");
    assert!(of(&left_out, "constant")["gain_median_error"].as_f64() > Some(0.05), "{left_out}");
    assert_eq!(left_out["changed"]["pairs"], 30);
    let by_file = bench
        .collo(&["predict", "evaluate", "--describe", "pairs.csv", "profiles.csv", "--predictor", "mine", "--json"])
        .exits(0)
        .json();
    for estimator in ["collo, mine", "1 ÷ Σ utilisation", "1 ÷ Σ SMACT", "constant"] {
        assert_eq!(of(&by_file, estimator)["groups"], 30);
    }
    // From the groups in the answer its worst error can be computed again.
    let groups = of(&by_file, "collo, mine")["predicted"].as_array().expect("each group");
    let errors = groups.iter().map(|group| {
        let gain = |whose: &str| group[whose]["gain"].as_f64().expect("a gain");
        assert!(group["predicted"]["gain_bounds"][0].as_f64() < Some(gain("predicted")), "{group}");
        (gain("predicted") / gain("measured") - 1.0).abs()
    });
    let worst = errors.fold(0.0, f64::max);
    assert!((worst - of(&by_file, "collo, mine")["gain_worst_error"].as_f64().expect("one")).abs() < 1e-9, "{worst}");
    // Without seconds of a step the memory of the processes tells how long steps are, and it is said.
    bench.write(
        "bare.csv",
        &profiles()
            .lines()
            .map(|line| line.rsplit_once(',').map_or(line, |(rest, _)| rest).to_string() + "\n")
            .collect::<String>(),
    );
    bench
        .collo(&["predict", "evaluate", "--describe", "pairs.csv", "bare.csv"])
        .exits(0)
        .says("from the memory of their processes");
}

/// The pairs again, as the speed of each while both run and as the same in times: both train for 100 s.
fn by_speed() -> (String, String) {
    let (mut speeds, mut times) = ("a,b,speed_a,speed_b\n".to_string(), "a,b,solo_a_s,solo_b_s,pair_a_s,pair_b_s\n".to_string());
    for (number, line) in pairs().lines().skip(2).enumerate() {
        let fields: Vec<&str> = line.split(',').collect();
        let speed = [0.91 - 0.013 * (number % 29) as f64, 0.97 - 0.011 * (number % 31) as f64];
        speeds += &format!("{},{},{},{}\n", fields[2], fields[3], speed[0], speed[1]);
        times += &format!("{},{},{},{},100,100\n", fields[2], fields[3], 100.0 * speed[0], 100.0 * speed[1]);
    }
    (speeds, times)
}

#[test]
fn relative_speeds_while_both_run_are_slowdowns_as_they_stand() {
    let (speeds, times) = by_speed();
    let bench = bench().file("speeds.csv", &speeds).file("times.csv", &times);
    let scores = |table: &str| {
        let answer = bench.collo(&["predict", "evaluate", "--describe", table, "profiles.csv", "--json"]).exits(0).json();
        (answer["measured"][0]["estimators"].clone(), answer["changed"].clone())
    };
    let ((by_speeds, none), (by_times, unchanged)) = (scores("speeds.csv"), scores("times.csv"));
    assert_eq!((none, &unchanged["changed"]), (Value::Null, &0.into()), "nothing is taken out");
    let (by_speeds, by_times) = (by_speeds.as_array().expect("a list"), by_times.as_array().expect("a list"));
    assert_eq!(by_speeds.len(), by_times.len());
    for (one, other) in by_speeds.iter().zip(by_times) {
        for key in ["member_median_error", "gain_median_error", "gain_worst_error"] {
            let values = [one, other].map(|scored| scored[key].as_f64().expect("a number"));
            assert!((values[0] - values[1]).abs() < 1e-9, "{key}: {one} {other}");
        }
    }
    let fit = |table: &str, name: &str| {
        bench.collo(&["predict", "fit", "--describe", table, "profiles.csv", "--to", name]).exits(0);
        fs_err::read_to_string(bench.at(name)).expect("written")
    };
    let law =
        |text: &str| serde_json::from_str::<Value>(text).expect("JSON")["law"]["unrecorded"]["law"]["per_longer_step"].as_f64();
    let (one, other) = (law(&fit("speeds.csv", "predictors/s.json")), law(&fit("times.csv", "predictors/t.json")));
    assert!((one.expect("a number") - other.expect("a number")).abs() < 1e-9, "{one:?} {other:?}");
}

#[test]
fn speeds_that_are_percent_or_stand_beside_times_are_refused() {
    let bench = bench().file("percent.csv", "a,b,speed_a,speed_b\nanet32,bnet64,98.3,0.9\n");
    let evaluate = |table: &str| bench.collo(&["predict", "evaluate", "--describe", table, "profiles.csv"]);
    evaluate("percent.csv").exits(2).says("`speed_a` is `98.3`, not a share of its speed alone").says("write 0.95 for 95 %");
    bench.write("both.csv", "a,b,speed_a,speed_b,solo_a_s\nanet32,bnet64,0.9,0.9,100\n");
    evaluate("both.csv").exits(2).says("has the columns `speed_a` and `solo_a_s`");
    bench.write("half.csv", "a,b,speed_a\nanet32,bnet64,0.9\n");
    evaluate("half.csv").exits(2).says("no column `speed_b`").says("`a`, `b`, `speed_a`, `speed_b`");
}

#[test]
fn a_rule_of_thumb_has_no_line_where_its_reading_is_another_one() {
    let bench = bench();
    let without = |column: &str| {
        let text = profiles();
        let mut lines = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
        let head = lines.next().expect("a head");
        let place = head.iter().position(|name| *name == column).expect("a column");
        let mut all = vec![head];
        all.extend(lines);
        for fields in &mut all {
            fields.remove(place);
        }
        bench.write("less.csv", &(all.iter().map(|fields| fields.join(",")).collect::<Vec<_>>().join("\n") + "\n"));
        bench.collo(&["predict", "evaluate", "--describe", "pairs.csv", "less.csv"]).exits(0).stdout
    };
    let no_smact = without("sm_active_ratio");
    assert!(no_smact.contains("1 ÷ Σ utilisation") && !no_smact.contains("1 ÷ Σ SMACT"), "{no_smact}");
    let no_utilisation = without("gpu_utilisation_percent");
    assert!(!no_utilisation.contains("1 ÷ Σ utilisation") && no_utilisation.contains("1 ÷ Σ SMACT"), "{no_utilisation}");
}

#[test]
fn rows_that_cannot_be_are_named_with_their_line() {
    let bench = bench();
    // The longer would have gone on alone for longer than it takes.
    bench.write("odd.csv", &format!("{}100,900,anet32,bnet64,90,300\n", pairs()));
    let said = bench.collo(&["predict", "evaluate", "--describe", "odd.csv", "profiles.csv"]).exits(0);
    said.says("odd.csv:33: the longer run went on for 800 s")
        .says("groups that are not compared: 1; each has times that cannot be");
    for (row, why) in [
        ("1,1,anet32,nobody,1,1", "`nobody` has no profile"),
        ("1,-1,anet32,bnet32,1,1", "`pair_b_s` is `-1`, not a number above 0"),
        ("1,,anet32,bnet32,1,1", "`pair_b_s` is absent"),
        ("1,1,anet32", "the row has 3 fields, but 6 columns are named"),
    ] {
        // A line of blanks is no row, but it is a line.
        bench.write("wrong.csv", &format!("{}   \n{row}\n", pairs()));
        let refused = bench.collo(&["predict", "fit", "--describe", "wrong.csv", "profiles.csv", "--to", "x.json"]).exits(2);
        assert!(line(&refused.stderr).contains(why), "{}", refused.stderr);
        assert!(line(&refused.stderr).contains("wrong.csv:34"), "{}", refused.stderr);
    }
    bench.collo(&["predict", "fit", "--describe", "pairs.csv", "--to", "x.json"]).exits(2).says("give the table of profiles too");
    bench.write("percent.csv", &profiles().replace("0.12,", "12,"));
    bench
        .collo(&["predict", "fit", "--describe", "pairs.csv", "percent.csv", "--to", "x.json"])
        .exits(2)
        .says("not a number from 0 to 1");
    bench
        .collo(&["predict", "evaluate", "--describe", "pairs.csv", "profiles.csv", "--predictor", "published-a100"])
        .exits(2)
        .says("predicts `memory`");
}

#[test]
fn a_campaign_of_groups_makes_a_predictor_of_its_modes() {
    let toml = "epochs = 2\n[axes]\nworkload = \"small\"\nbatch_size = [16, 32, 64]\ndegree = [1, 2, 3]\nsharing = [\"naive\", \"mps\"]\n";
    let machine = Machine::new("a100-40gb", toml).env("COLLO_SIM_EPOCH_S", "0.8");
    machine.run(&[]).exits(0);
    let said = machine.collo(&["predict", "fit", "--quantity", "company", "x", "--to", "predictors/mine.json"]).exits(0);
    said.answers("company, fitted on simulated measurements");
    let mine = machine.collo(&["predict", "show", "mine", "--json"]).exits(0).json();
    assert_eq!((&mine["mark"], &mine["law"]["naive"]["most_members"]), (&"simulated".into(), &3.into()));
    assert_eq!((&mine["law"]["unrecorded"], &mine["conditions"]["architecture"]), (&Value::Null, &"Ampere".into()));
    let scores = machine.collo(&["predict", "evaluate", "--quantity", "company", "x", "--json"]).exits(0).json();
    let modes: Vec<&Value> = scores["measured"].as_array().expect("a list").iter().map(|part| &part["mode"]).collect();
    assert_eq!(modes, ["naive", "mps"]);
}

/// As the data set of a campaign on a CPU has them: of eight cores each member keeps some busy.
fn on_a_cpu() -> String {
    let mut text =
        "experiment,campaign,device,device_kind,device_cores,simulated,cell,sharing,degree,repetition,outcome,validity,member,\
        workload,batch_size,solo_cell,solo_items_per_s,solo_cpu_ratio,slowdown\n"
            .to_string();
    for cell in 0..6_u32 {
        let cores = [1.5 + f64::from(cell), 3.0];
        let slowdown = (0.25 * ((cores[0] + cores[1]) / 8.0 - 0.95).max(0.0)).exp();
        for repetition in 1..=2 {
            for (member, cores) in cores.into_iter().enumerate() {
                text += &format!(
                    "x,1,cpu,cpu,8,false,w{cell}+v b32,naive,2,{repetition},completed,valid,{member},w{member},32,w{member} solo,320,{cores},{}\n",
                    slowdown * [0.99, 1.01][repetition - 1]
                );
            }
        }
        // The run without its own numbers counts for nothing, and neither does a member alone.
        text += &format!("x,1,cpu,cpu,8,false,w{cell}+v b32,naive,2,3,failed,discarded,0,w0,32,w0 solo,320,1,\n");
        text += &format!("x,1,cpu,cpu,8,false,w{cell} solo,solo,1,1,completed,valid,0,w0,32,w0 solo,320,1,1\n");
    }
    text + "x,1,cpu,cpu,8,false,late,naive,2,1,completed,valid,0,w0,32,w0 solo,,1,\nx,1,cpu,cpu,8,false,odd,mps:50%,2,1,completed,valid,0,w0,32,w0 solo,320,1,1.2\n"
}

#[test]
fn a_data_set_of_a_cpu_counts_each_cell_once_by_its_share_of_the_cores() {
    let bench = Bench::new().file("rows.csv", &on_a_cpu());
    let said = bench
        .collo(&["predict", "fit", "--describe", "--quantity", "company", "rows.csv", "--to", "predictors/here.json"])
        .exits(0);
    let said = said.says("groups that are not compared: 1; each has a member whose time alone was not measured");
    said.says("groups that are not compared: 1; each shares in a way that has no coefficients");
    let here = bench.collo(&["predict", "show", "here", "--json"]).exits(0).json();
    let naive = &here["law"]["naive"];
    assert_eq!((&here["conditions"]["device"], &naive["left_out"]["groups"]), (&"cpu".into(), &6.into()));
    assert!(naive["left_out"]["gain_worst_error"].as_f64() < Some(0.1), "{naive}");
}
