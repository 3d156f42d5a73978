//! What a group will gain is said before it is measured, from its members alone, kept with the campaign, and scored: on a simulated card,
//! by a predictor that was fitted on simulated groups.

use serde_json::Value;

use crate::sim::{Machine, short};

/// Groups on which the predictor is fitted: of six families, since the interval of two is too wide to plan with.
const FITTED: &str = "[axes]\nworkload = [\"small\", \"medium\", \"mobilenet-v2\", \"vgg19-cifar10\", \"efficientnet-b0\", \"densenet121-cifar10\"]\n\
    batch_size = 32\nsharing = \"naive\"\ndegree = [1, 2]\n";
/// Of another batch size, and one of both.
const OTHERS: &str = "[axes]\nworkload = [\"small\", \"medium\"]\nbatch_size = 128\nsharing = \"naive\"\ndegree = [1, 2]\n\
    [[group]]\nmembers = [{ workload = \"small\", batch_size = 128 }, { workload = \"medium\", batch_size = 128 }]\n";

fn cell<'v>(of: &'v Value, label: &str) -> &'v Value {
    let cells = of["cells"].as_array().expect("a list");
    cells.iter().find(|cell| cell["cell"] == label).unwrap_or_else(|| panic!("no {label} in {of}"))
}

fn gain_from(plan: &Value, label: &str) -> Option<String> {
    cell(plan, label)["forecast"]["gain"]["from"].as_str().map(Into::into)
}

#[test]
fn groups_are_predicted_from_members_alone_then_measured_and_scored() {
    let machine = Machine::new("a100-40gb,noise=0,seed=1", FITTED).env("COLLO_SIM_EPOCH_S", "0.4");
    let cache = machine.bench.at("cache").display().to_string();
    let machine = machine.env("COLLO_CACHE", &cache);
    machine.run(&[]).exits(0);
    machine.collo(&["predict", "fit", "--quantity", "company", "x", "--to", "predictors/groups.json"]).exits(0);

    // Nobody has been alone with this batch size: the step time of another would do, its activity would not.
    machine.bench.write("experiments/y.toml", &short(OTHERS));
    let pair = "small×2 naive b128";
    let bare = machine.collo(&["plan", "y", "--json"]).exits(0).json();
    assert_eq!(gain_from(&bare, pair), None);
    let why = machine.collo(&["plan", "y"]).exits(0);
    why.answers("not predicted, the SM activity of `small solo b128` alone is neither measured on this device nor predicted");

    machine.collo(&["run", "y", "--where", "degree == 1"]).exits(0);
    let plan = machine.collo(&["plan", "y", "--json"]).exits(0).json();
    assert_eq!(gain_from(&plan, pair).as_deref(), Some("predicted"));
    let forecast = &cell(&plan, pair)["forecast"];
    let said = forecast["gain"]["estimate"].as_f64().expect("a gain");
    let number = |key: &str| forecast[key].as_f64().unwrap_or_else(|| panic!("no {key} in {forecast}"));
    assert!(number("each_low_s") < number("each_s") && number("each_s") < number("each_high_s"), "{forecast}");
    assert!(forecast["from"].as_str().expect("a source").ends_with("what company is predicted to cost"), "{forecast}");
    let text = machine.collo(&["plan", "y"]).exits(0).answers("p: predicted by groups, fitted on simulated measurements");
    text.answers(" p  ");
    let rows = machine.collo(&["predict", "y", "--format", "csv"]).exits(0);
    rows.answers("gain,gain_low,gain_high,gain_from");

    machine.collo(&["run", "y"]).exits(0);
    let campaign = machine.bench.runs_folder().find("y").expect("stored");
    let claims = campaign.manifest().predicted.clone().expect("kept");
    let claim = claims.of_cell(pair).and_then(|cell| cell.company.as_ref()).expect("claimed");
    assert!((claim.stp.estimate - said).abs() < 1e-9, "what the plan said is what is kept");
    assert_eq!(claim.from, collo_store::AloneFrom::Measured);
    let report = machine.collo(&["report", "y", "--format", "json"]).exits(0).json();
    assert_eq!(report["predicted"]["company"]["fitted_on"], "simulated");
    assert_eq!(cell(&report, pair)["predicted"]["company"]["stp"]["estimate"].as_f64(), Some(claim.stp.estimate));
    let measured = cell(&report, pair)["stp"]["estimate"].as_f64().expect("measured");
    assert!((measured / said - 1.0).abs() < 0.5, "{measured} {said}");
    let guidelines = report["guidelines"].as_array().expect("a list");
    assert!(guidelines.iter().any(|g| g["id"] == "prediction-company"), "{guidelines:?}");

    // What was measured takes the place of what was predicted.
    let again = machine.collo(&["plan", "y", "--json"]).exits(0).json();
    assert_eq!(gain_from(&again, pair).as_deref(), Some("measured"));
}
