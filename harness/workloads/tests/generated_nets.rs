//! Networks drawn at random, described and classified by the real PyTorch: a table of them goes through `collo predict evaluate`.

#[expect(dead_code, reason = "each test program uses its part of it")]
#[path = "../../cli/tests/support/mod.rs"]
mod support;

use support::Bench;

/// Small random networks with every number given, and memory that is made up.
fn nets() -> String {
    let mut text = "workload,settings,batch_size,memory_bytes,measured_by\n".to_string();
    for (at, shape) in ["pyramid", "uniform", "bottleneck", "gradual"].iter().enumerate() {
        for depth in [1, 3] {
            for batch in [8_usize, 64, 256, 1024] {
                let settings = format!(
                    "kind=mlp;shape={shape};depth={depth};width=64;inputs=64;outputs=8;activation=relu;normalisation=none;dropout=0"
                );
                let bytes = (900 + batch + 40 * at + 10 * depth) << 20;
                text += &format!("generated,{settings},{batch},{bytes},made up\n");
            }
        }
    }
    text
}

#[test]
fn generated_nets_are_left_out_by_their_shape_and_gpumemnet_is_trained_beside_them() {
    let bench = Bench::new().file("nets.csv", &nets());
    let arguments = ["predict", "evaluate", "nets.csv", "--bins", "1000", "--memnet", "--split", "shape", "--describe", "--json"];
    let said = bench.collo(&arguments).exits(0).json();
    let measured = &said["measured"][0];
    let families: std::collections::BTreeSet<&str> =
        measured["trainings"].as_array().expect("a list").iter().filter_map(|t| t["family"].as_str()).collect();
    let shapes = ["bottleneck", "gradual", "pyramid", "uniform"].map(|shape| format!("generated mlp {shape}"));
    assert_eq!(families.into_iter().collect::<Vec<_>>(), shapes);
    assert_eq!(measured["bins"][0]["estimators"][0]["rows"], 32);
    let results = measured["memnet"]["results"].as_array().expect("a list").clone();
    let names: Vec<(&str, &str)> = results.iter().filter_map(|r| Some((r["ensemble"].as_str()?, r["folds"].as_str()?))).collect();
    assert_eq!(names, [("mlp", "original"), ("mlp", "honest"), ("transformer", "original"), ("transformer", "honest")]);
    for result in &results {
        assert_eq!((result["kind"].as_str(), result["rows"].as_u64()), (Some("mlp"), Some(32)));
        assert_eq!(result["splits"].as_array().map(Vec::len), Some(4));
        assert!((0.0..=1.0).contains(&result["accuracy"].as_f64().expect("a share")), "{result}");
    }
    assert_eq!(bench.left(), []);
}
