//! The statistics against SciPy's on random data. `scipy/reference.py` wrote what it is held against, and says with which versions.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

use collo_quantity::stats::{Pool, Term, holm, log_moments, quantity, t_p, t_quantile};
use serde_json::Value;

fn reference(name: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("scipy/reference.json")).unwrap();
    all[name].as_array().unwrap().clone()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

#[track_caller]
fn near(found: f64, known: f64) {
    assert!((found - known).abs() <= 1e-7 * known.abs().max(1e-3), "{found} is not SciPy's {known}");
}

#[test]
fn quantiles_and_p_values_of_student_s_t_are_scipy_s() {
    for row in reference("t_quantiles") {
        let [p, df, known] = numbers(&row)[..] else { panic!("three numbers") };
        near(t_quantile(p, df), known);
    }
    for row in reference("t_p") {
        let [t, df, known] = numbers(&row)[..] else { panic!("three numbers") };
        near(t_p(t, df), known);
    }
}

#[test]
fn holm_s_correction_is_that_of_statsmodels() {
    for row in reference("holm") {
        for (found, known) in holm(&numbers(&row["p"])).into_iter().zip(numbers(&row["adjusted"])) {
            near(found, known);
        }
    }
}

#[test]
fn pooled_and_moderated_intervals_are_those_of_the_formulas_solved_with_scipy() {
    let campaigns = reference("campaigns");
    assert!(campaigns.len() >= 6);
    for campaign in campaigns {
        let groups: Vec<Vec<f64>> = campaign["groups"].as_array().unwrap().iter().map(numbers).collect();
        let moments: Vec<_> = groups.iter().map(|g| log_moments(g).unwrap()).collect();
        let variances: Vec<_> = moments.iter().map(|m| m.1.unwrap()).collect();
        let pool = Pool::fit(&variances).unwrap();
        for (i, known) in campaign["intervals"].as_array().unwrap().iter().enumerate() {
            let n = groups[i].len();
            let q = quantity(moments[i].0, n, &[Term { weight: 1.0, variance: pool.shrink(variances[i]), n }]);
            for (found, known) in [q.estimate, q.low.unwrap(), q.high.unwrap()].into_iter().zip(numbers(known)) {
                near(found, known);
            }
        }
    }
}
