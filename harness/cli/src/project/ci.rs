//! `collo ci`: a job for a repository's CI system that measures an experiment every night and keeps its report and JUnit file.
//!
//! To add another CI system: a variant of `CiSystem`, its text here.

use crate::args::{self, CiSystem};
use crate::context::{Context, Ended};
use crate::{exit, output};
use collo_plan::experiment::Experiment;
use collo_plan::workload::Workloads;
use collo_text::quoting::literal;

pub fn run(context: &Context<'_>, a: &args::Ci) -> Ended {
    let project = context.project()?;
    // What does not exist would fail every night.
    let experiment = Experiment::resolve(&project, &a.name, &Workloads::load(&project.workloads())?)?;
    let text = match a.system {
        CiSystem::Github => github(&experiment.name, a.hour, &a.runner),
        CiSystem::Gitlab => gitlab(&experiment.name, a.hour, &a.runner),
    };
    output::result(text.trim_end());
    output::note(match a.system {
        CiSystem::Github => "next: save it as .github/workflows/collo.yml; the runner must be self-hosted, alone on its GPU",
        CiSystem::Gitlab => "next: save it as .gitlab-ci.yml, and add the schedule under Build > Pipeline schedules",
    });
    Ok(exit::DONE)
}

/// Keys: docs.github.com/actions/reference/workflow-syntax-for-github-actions. A job on the runner of the night before would be
/// measured beside it: `concurrency` lets one wait.
fn github(name: &str, hour: u8, runner: &str) -> String {
    let name = literal(name);
    format!(
        r#"# Written by collo ci github: measures an experiment every night, and fails if it became slower.
name: collo nightly
on:
  schedule:
    - cron: "0 {hour} * * *"
  workflow_dispatch: {{}}
concurrency:
  group: collo-nightly
  cancel-in-progress: false
jobs:
  nightly:
    runs-on: [self-hosted, {runner}]
    timeout-minutes: 480
    env:
      EXPERIMENT: {name}
    steps:
      - uses: actions/checkout@v4
        with:
          # The history of nights and the data stay between runs.
          clean: false
      - name: Build
        run: cargo build --release --locked -p collo
      - name: Measure and judge
        run: target/release/collo nightly "$EXPERIMENT"
      - name: Report
        if: always()
        run: |
          mkdir -p collo-report
          target/release/collo report "$EXPERIMENT" --to collo-report
          target/release/collo report "$EXPERIMENT" --format junit --to collo-report/junit.xml
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: collo-report
          path: collo-report
"#,
        runner = literal(runner),
    )
}

/// Keys: docs.gitlab.com/ci/yaml. Schedules are not in the file: they are set in the project.
fn gitlab(name: &str, hour: u8, runner: &str) -> String {
    format!(
        r#"# Written by collo ci gitlab: measures an experiment every night, and fails if it became slower.
# It runs on a schedule: Build > Pipeline schedules, with the cron expression 0 {hour} * * *
collo-nightly:
  rules:
    - if: $CI_PIPELINE_SOURCE == "schedule"
  tags: [{runner}]
  timeout: 8h
  resource_group: collo-nightly
  variables:
    EXPERIMENT: {name}
    # The history of nights and the data stay between runs.
    GIT_CLEAN_FLAGS: none
  script:
    - cargo build --release --locked -p collo
    - target/release/collo nightly "$EXPERIMENT"
  after_script:
    - mkdir -p collo-report
    - target/release/collo report "$EXPERIMENT" --to collo-report
    - target/release/collo report "$EXPERIMENT" --format junit --to collo-report/junit.xml
  artifacts:
    when: always
    paths: [collo-report]
    reports:
      junit: collo-report/junit.xml
"#,
        runner = literal(runner),
        name = literal(name),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_job_for_github_measures_every_night_and_keeps_the_report() {
        let text = github("nightly", 2, "gpu");
        let read: Value = serde_saphyr::from_str(&text).expect("YAML");
        assert_eq!(read["on"]["schedule"][0]["cron"], "0 2 * * *");
        let steps = read["jobs"]["nightly"]["steps"].as_array().expect("steps");
        assert_eq!(steps.len(), 5);
        assert!(steps[3]["run"].as_str().expect("a script").contains("--format junit"));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_job_for_gitlab_measures_on_a_schedule_and_keeps_the_report() {
        let text = gitlab("nightly", 3, "a100");
        let read: Value = serde_saphyr::from_str(&text).expect("YAML");
        let job = &read["collo-nightly"];
        assert_eq!(job["rules"][0]["if"], "$CI_PIPELINE_SOURCE == \"schedule\"");
        assert_eq!(job["artifacts"]["reports"]["junit"], "collo-report/junit.xml");
        assert_eq!(job["tags"][0], "a100");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_name_that_means_something_in_yaml_stays_a_name() {
        for odd in ["yes", "a: b", "#x", "it's \"x\"", "0x10"] {
            let read: Value = serde_saphyr::from_str(&github(odd, 2, "gpu")).expect("YAML");
            assert_eq!(read["jobs"]["nightly"]["env"]["EXPERIMENT"], odd);
            let read: Value = serde_saphyr::from_str(&gitlab(odd, 2, "gpu")).expect("YAML");
            assert_eq!(read["collo-nightly"]["variables"]["EXPERIMENT"], odd);
        }
    }
}
