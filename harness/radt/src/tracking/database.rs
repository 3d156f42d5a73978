//! MLflow's database, an SQLite file: what MLflow 3.17 tracks to by default. The tables are those of
//! mlflow/store/tracking/dbmodels/models.py: `experiments`, `runs`, `params`, `tags`, `metrics`.
//!
//! It is opened as a file that nothing changes, so that nothing is written beside it, and refused while something changes it.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use collo_text::Diagnostic;
use rusqlite::{Connection, OpenFlags, Row};

use super::{StoredTrack, TrackedExperiment, unreadable};

/// How such a file begins (<https://www.sqlite.org/fileformat2.html>, 1.3).
const MAGIC: &[u8] = b"SQLite format 3\0";
const TABLES: [&str; 5] = ["experiments", "runs", "params", "tags", "metrics"];
/// Files in which changes of a database are kept until they are complete (<https://www.sqlite.org/tempfiles.html>). They are beside the
/// file itself, not beside a link to it (<https://www.sqlite.org/howtocorrupt.html>, "Multiple links to the same file").
const CHANGES: [&str; 2] = ["-journal", "-wal"];
/// A week of readings each second, several times over.
const MOST_ROWS: usize = 4_000_000;

/// Whether a file is an SQLite database, however it is named.
pub fn is_database(path: &Path) -> bool {
    path.is_file() && collo_text::read_begin(path, MAGIC.len() as u64).is_ok_and(|begin| begin == MAGIC)
}

/// A database that is open for reading.
#[derive(Debug)]
pub(super) struct Database {
    path: PathBuf,
    connection: Connection,
    /// Its length and time of change when it was opened.
    state: (u64, SystemTime),
}

impl Database {
    pub fn open(path: &Path) -> Result<Database, Diagnostic> {
        let real = path.canonicalize().map_err(|e| unreadable(path, e))?;
        let changing =
            CHANGES.iter().map(|ending| beside(&real, ending)).find(|beside| beside.metadata().is_ok_and(|m| m.len() > 0));
        if let Some(changes) = changing {
            let what = format!("{} is being written, or its writer was killed", collo_text::shown(path));
            let why = format!("{} has changes that are not complete", collo_text::shown(&changes));
            let close =
                format!("end what uses MLflow; after a kill, `sqlite3 {} .tables` completes it", collo_text::shown(&real));
            return Err(Diagnostic::new(what).caused_by(why).hint(close));
        }
        let wrong = |e: rusqlite::Error| unreadable(path, e);
        // The file that was checked is the one that SQLite opens.
        let file = collo_text::open_regular(path).map_err(|e| unreadable(path, e))?;
        let state = state(file.file()).map_err(|e| unreadable(path, e))?;
        let uri = format!("file:/proc/self/fd/{}?immutable=1", file.as_raw_fd());
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(uri, flags).map_err(wrong)?;
        // A file may have views and columns that compute: <https://www.sqlite.org/security.html>.
        connection.pragma_update(None, "trusted_schema", false).map_err(wrong)?;
        let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'";
        let names: Vec<String> = rows(&connection, sql, &[], |row| row.get(0)).map_err(wrong)?;
        if let Some(absent) = TABLES.iter().find(|table| !names.iter().any(|name| name == *table)) {
            let what = format!("{} is an SQLite database, and not one that MLflow tracks to", collo_text::shown(path));
            return Err(Diagnostic::new(what)
                .caused_by(format!("it has no table `{absent}`"))
                .hint("name MLflow's: `mlflow.db`"));
        }
        Ok(Database { path: path.into(), connection, state })
    }

    /// Its experiments, without the deleted ones, which the file store moves away.
    pub fn experiments(&self) -> Result<Vec<TrackedExperiment>, Diagnostic> {
        let sql = "SELECT CAST(experiment_id AS TEXT), name FROM experiments WHERE lifecycle_stage IS NOT 'deleted' ORDER BY 1";
        let all: Vec<(String, String)> = self.rows(sql, &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
        all.into_iter().map(|(id, name)| self.experiment(id, name)).collect()
    }

    fn experiment(&self, id: String, name: String) -> Result<TrackedExperiment, Diagnostic> {
        let sql =
            "SELECT run_uuid, status, start_time, end_time, lifecycle_stage FROM runs WHERE CAST(experiment_id AS TEXT) = ?";
        let folder = self.path.parent().unwrap_or(Path::new("")).to_path_buf();
        let of_row = |row: &Row<'_>| {
            let status: Option<String> = row.get(1)?;
            let lifecycle: Option<String> = row.get(4)?;
            Ok(StoredTrack {
                id: row.get(0)?,
                folder: folder.clone(),
                is_deleted: lifecycle.as_deref() == Some("deleted"),
                status: status.unwrap_or_else(|| "unknown".into()),
                start_ms: row.get::<_, Option<i64>>(2)?.and_then(|ms| u64::try_from(ms).ok()),
                end_ms: row.get::<_, Option<i64>>(3)?.and_then(|ms| u64::try_from(ms).ok()),
                ..StoredTrack::default()
            })
        };
        let (mut runs, mut leftovers) = (Vec::new(), Vec::new());
        for mut stored in self.rows(sql, &[&id], of_row)? {
            stored.params = self.texts("SELECT key, value FROM params WHERE run_uuid = ?", &stored.id)?;
            stored.tags = self.texts("SELECT key, value FROM tags WHERE run_uuid = ?", &stored.id)?;
            match stored.judged() {
                Ok(run) => runs.push(run),
                Err(leftover) => leftovers.push(leftover),
            }
        }
        Ok(TrackedExperiment { place: format!("experiment {id}"), id, name, runs, leftovers })
    }

    fn texts(&self, sql: &str, run: &str) -> Result<BTreeMap<String, String>, Diagnostic> {
        let pairs: Vec<(String, Option<String>)> = self.rows(sql, &[run], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(pairs.into_iter().map(|(key, value)| (key, value.unwrap_or_default().trim().to_string())).collect())
    }

    /// The readings of a metric of a run. A value that is none is marked in a column of its own, and stored as 0.
    pub fn readings(&self, run: &str, metric: &str) -> Result<Vec<(u64, f64)>, Diagnostic> {
        let sql = "SELECT timestamp, CASE WHEN is_nan THEN NULL ELSE value END FROM metrics WHERE run_uuid = ? AND key = ?";
        let pairs: Vec<(i64, Option<f64>)> = self.rows(sql, &[run, metric], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let reading = |(at_ms, value): (i64, Option<f64>)| Some((u64::try_from(at_ms).ok()?, value.unwrap_or(f64::NAN)));
        Ok(pairs.into_iter().filter_map(reading).collect())
    }

    fn rows<T>(
        &self,
        sql: &str,
        values: &[&str],
        of_row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Diagnostic> {
        let found = rows(&self.connection, sql, values, of_row).map_err(|e| unreadable(&self.path, e))?;
        if found.len() > MOST_ROWS {
            let many = unreadable(&self.path, format!("it has more than {MOST_ROWS} rows of one kind"));
            return Err(many.hint("delete from it the runs that are not to be imported: `mlflow runs delete`, then `mlflow gc`"));
        }
        Ok(found)
    }

    /// What was read is consistent only if nothing was written meanwhile.
    pub fn expect_unchanged(&self) -> Result<(), Diagnostic> {
        let now = collo_text::open_regular(&self.path).and_then(|file| state(file.file()));
        match now {
            Ok(now) if now == self.state => Ok(()),
            _ => Err(unreadable(&self.path, "it was written meanwhile").hint("end what uses MLflow, and import again")),
        }
    }
}

fn rows<T>(
    connection: &Connection,
    sql: &str,
    values: &[&str],
    of_row: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    let mut statement = connection.prepare(sql)?;
    statement.query_map(rusqlite::params_from_iter(values), of_row)?.take(MOST_ROWS + 1).collect()
}

fn state(file: &File) -> std::io::Result<(u64, SystemTime)> {
    let found = file.metadata()?;
    Ok((found.len(), found.modified()?))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with an empty database of MLflow's, and a connection to it.
    fn tracked(name: &str) -> (tempfile::TempDir, Connection) {
        let folder = tempfile::tempdir().expect("a folder");
        let connection = Connection::open(folder.path().join(name)).expect("created");
        let tables: Vec<String> = TABLES.iter().map(|table| format!("CREATE TABLE {table} (a);")).collect();
        connection.execute_batch(&tables.concat()).expect("created");
        (folder, connection)
    }

    fn refusal(path: &Path) -> Option<String> {
        Database::open(path).err().map(|refused| refused.to_string())
    }

    /// A database, and a link to it from another folder.
    fn linked(folder: &Path) -> [PathBuf; 2] {
        let link = folder.join("elsewhere/link.db");
        fs_err::create_dir(folder.join("elsewhere")).expect("made");
        fs_err::os::unix::fs::symlink("../mlflow.db", &link).expect("linked");
        [folder.join("mlflow.db"), link]
    }

    #[test]
    fn a_database_whose_changes_are_in_a_log_is_refused_by_whichever_name() {
        let (folder, writer) = tracked("mlflow.db");
        let names = linked(folder.path());
        assert_eq!(names.each_ref().map(|name| refusal(name)), [None, None]);
        writer.pragma_update(None, "journal_mode", "wal").expect("set");
        writer.execute("INSERT INTO runs VALUES (1)", []).expect("inserted");
        for name in &names {
            let refused = refusal(name).expect("its log has changes");
            assert!(refused.contains("mlflow.db-wal has changes that are not complete"), "{refused}");
            assert!(refused.contains("mlflow.db .tables` completes it"), "{refused}");
        }
        drop(writer);
        assert_eq!(names.each_ref().map(|name| refusal(name)), [None, None]);
    }

    #[test]
    fn a_database_whose_changes_can_still_be_undone_is_refused_by_whichever_name() {
        let (folder, writer) = tracked("mlflow.db");
        let names = linked(folder.path());
        writer.execute_batch("BEGIN IMMEDIATE; INSERT INTO runs VALUES (1)").expect("begun");
        // What SQLite has in memory is written to the file, and how to undo it to the journal.
        writer.cache_flush().expect("flushed");
        for name in &names {
            let refused = refusal(name).expect("its journal undoes a change");
            assert!(refused.contains("mlflow.db-journal has changes that are not complete"), "{refused}");
        }
        writer.execute_batch("COMMIT").expect("committed");
        assert_eq!(names.each_ref().map(|name| refusal(name)), [None, None]);
    }
}
