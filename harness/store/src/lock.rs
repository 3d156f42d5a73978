//! One collo per campaign: an advisory lock that the kernel releases when its process ends, in whatever way.

use std::fs::TryLockError;
use std::io::Write;
use std::path::Path;

use fs_err as fs;

use crate::{Error, Result, clock};
use collo_text::{open_regular, read_small_text};

/// The lock of a campaign that is being measured; released on drop.
#[derive(Debug)]
pub struct CampaignLock {
    _file: std::fs::File,
}

impl CampaignLock {
    pub(crate) fn take(campaign: &Path, id: &str) -> Result<Self> {
        let path = campaign.join("lock");
        if path.exists() {
            // Neither a pipe nor a device is written to.
            drop(open_regular(&path)?);
        }
        let file = fs::OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&path)?.into_file();
        admit(file.try_lock(), campaign, id)?;
        file.set_len(0)?;
        (&file).write_all(format!("{} {}\n", std::process::id(), clock::utc_now()).as_bytes())?;
        Ok(CampaignLock { _file: file })
    }
}

/// Whether an attempt at the lock of a campaign gave it. On a file system without locks none does.
fn admit(attempt: std::result::Result<(), TryLockError>, campaign: &Path, id: &str) -> Result<()> {
    match attempt {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => {
            let (pid, since) = holder(campaign).unwrap_or((0, "an unknown time".into()));
            Err(Error::Busy { campaign: id.into(), pid, since })
        }
        Err(TryLockError::Error(source)) => Err(Error::NoLocks { campaign: id.into(), source }),
    }
}

/// The pid and start time of the collo that is measuring this campaign, if any.
pub(crate) fn running(campaign: &Path) -> Option<(u32, String)> {
    let file = open_regular(&campaign.join("lock")).ok()?.into_file();
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => holder(campaign),
        _ => None,
    }
}

fn holder(campaign: &Path) -> Option<(u32, String)> {
    let text = read_small_text(&campaign.join("lock"), 4096).ok()?;
    let (pid, since) = text.trim().split_once(' ')?;
    Some((pid.parse().ok()?, since.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_can_be_locked_nothing_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        let after = |attempt| admit(attempt, folder.path(), "7f3a");
        for number in [nix::libc::ENOSYS, nix::libc::ENOLCK, nix::libc::EOPNOTSUPP] {
            let none = TryLockError::Error(std::io::Error::from_raw_os_error(number));
            assert!(matches!(after(Err(none)), Err(Error::NoLocks { .. })));
        }
        assert!(matches!(after(Err(TryLockError::WouldBlock)), Err(Error::Busy { .. })));
        assert!(after(Ok(())).is_ok());
    }
}
