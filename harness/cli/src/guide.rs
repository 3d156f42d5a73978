//! The pages of the guide, embedded, so that an installed collo has them. In: nothing. Out: Markdown by the name of its topic.
//!
//! To add a page: a row of [`PAGES`].

/// Topic and page. A topic is named after its file, except where a verb has that name.
pub const PAGES: [(&str, &str); 19] = [
    ("advising", include_str!("../../../docs/guide/advising.md")),
    ("benchmarks", include_str!("../../../docs/guide/benchmarks.md")),
    ("catalogue", include_str!("../../../docs/guide/catalogue.md")),
    ("commands", include_str!("../../../docs/guide/commands.md")),
    ("comparing", include_str!("../../../docs/guide/comparing.md")),
    ("data-sets", include_str!("../../../docs/guide/data.md")),
    ("experiments", include_str!("../../../docs/guide/experiments.md")),
    ("exports", include_str!("../../../docs/guide/exports.md")),
    ("metrics", include_str!("../../../docs/guide/metrics.md")),
    ("nights", include_str!("../../../docs/guide/nightly.md")),
    ("observers", include_str!("../../../docs/guide/observers.md")),
    ("predicting", include_str!("../../../docs/guide/predicting.md")),
    ("real-gpu", include_str!("../../../docs/guide/real-gpu.md")),
    ("running", include_str!("../../../docs/guide/running.md")),
    ("safety", include_str!("../../../docs/guide/safety.md")),
    ("serving", include_str!("../../../docs/guide/serving.md")),
    ("simulation", include_str!("../../../docs/guide/simulation.md")),
    ("traces", include_str!("../../../docs/guide/traces.md")),
    ("workloads", include_str!("../../../docs/guide/workloads.md")),
];

/// The title of a page.
pub fn title(page: &'static str) -> &'static str {
    page.lines().next().unwrap_or_default().trim_start_matches("# ")
}

/// The topic of a file of the guide, `simulation.md`.
pub fn topic(file: &str) -> Option<&'static str> {
    let name = file.strip_suffix(".md")?;
    let topics = || PAGES.iter().map(|(topic, _)| *topic);
    topics().find(|topic| *topic == name).or_else(|| RENAMED.iter().find(|(of, _)| *of == name).map(|(_, topic)| *topic))
}

/// Files whose name is that of a verb, and their topic.
const RENAMED: [(&str, &str); 2] = [("data", "data-sets"), ("nightly", "nights")];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use clap::CommandFactory;

    use super::*;
    use crate::args::Arguments;

    #[test]
    fn every_page_of_the_guide_is_a_topic_that_no_verb_has() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
        let files = fs_err::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let topics: BTreeSet<&str> = files.map(|file| topic(&file).unwrap_or_else(|| panic!("{file} is no topic"))).collect();
        assert_eq!(topics, PAGES.iter().map(|(topic, _)| *topic).collect());
        let command = Arguments::command();
        assert!(topics.iter().all(|topic| command.find_subcommand(topic).is_none()), "{topics:?}");
        assert_eq!(PAGES.iter().find(|(topic, _)| *topic == "nights").map(|(_, page)| title(page)), Some("The nightly"));
    }
}
