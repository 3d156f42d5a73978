//! What was published of a member's memory, for a manager that decides by the estimates of others.

use collo_predict::EstimateSource;

use crate::cell::Member;

/// Bytes of one card that a source of the literature names for exactly this training; none where there is no such figure.
pub fn published_estimate(member: &Member, source: EstimateSource) -> Option<u64> {
    let folder = member.workload().folder.file_name()?.to_str()?;
    source.published_bytes(folder, member.settings(), member.batch_size()?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use collo_predict::published::estimators;

    use super::*;
    use crate::workload::Workloads;

    #[test]
    fn every_published_training_is_a_preset_of_ours_and_its_figures_are_found() {
        let workloads = Workloads::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads")).expect("right");
        let file = estimators();
        let jobs = file.jobs.iter().map(|job| (&job.id, &job.workload, job.batch_size, job.measured_mib["thesis"]));
        let tasks = file.tasks.iter().map(|task| (&task.id, &task.workload, task.batch_size, task.measured_mib["thesis"]));
        let mut found = 0;
        for (id, of, batch_size, mib) in jobs.chain(tasks) {
            let is_it = |member: &Member| of.settings.iter().all(|(name, value)| member.settings().get(name) == Some(value));
            let members = workloads.iter().filter(|w| w.folder.ends_with(&of.folder));
            let members = members.map(|w| Member::new(w, [("batch_size", batch_size.into())]).expect("right"));
            let member = members.into_iter().find(is_it).unwrap_or_else(|| panic!("{id} is nowhere"));
            let bytes = published_estimate(&member, EstimateSource::Measured).expect(id);
            assert_eq!(bytes as f64, mib * 1_048_576.0, "{id}");
            found += 1;
        }
        assert_eq!(found, 36);
    }
}
