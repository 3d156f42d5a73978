//! `samples.parquet`: a row for each reading of each metric.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use fs_err as fs;

use super::{batches, table_error, whole, writer};
use crate::Result;

/// One reading of one metric at one time; `value` is `None` if the source had none.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub at_ns: u64,
    /// The window that the value is a mean over, ending at `at_ns`; 0 for an instantaneous reading or a counter.
    pub window_ns: u64,
    pub source: &'static str,
    /// `host`, `member:0`, `process`, `gpu:UUID`, `mig:UUID`.
    pub scope: Arc<str>,
    /// With its unit: `rss_bytes`, `power_w`.
    pub metric: &'static str,
    pub value: Option<f64>,
}

fn sample_schema() -> Arc<Schema> {
    Arc::new(Schema::new(vec![
        Field::new("at_ns", DataType::Int64, false),
        Field::new("window_ns", DataType::Int64, false),
        Field::new("source", DataType::Utf8, false),
        Field::new("scope", DataType::Utf8, false),
        Field::new("metric", DataType::Utf8, false),
        Field::new("value", DataType::Float64, true),
    ]))
}

/// Readings `(at_ns, window_ns, value)` in order, by `(scope, metric)`.
pub type Readings = BTreeMap<(String, String), Vec<(u64, u64, Option<f64>)>>;

/// Read the values of `samples.parquet` selected by `keep(source, scope, metric)`, from any source.
pub fn read_samples(path: &Path, keep: impl Fn(&str, &str, &str) -> bool) -> Result<Readings> {
    whole(path, || samples_of(path, keep))
}

fn samples_of(path: &Path, keep: impl Fn(&str, &str, &str) -> bool) -> Result<Readings> {
    let mut found = Readings::new();
    each_sample(path, |row| {
        if keep(row.source, row.scope, row.metric) {
            found.entry((row.scope.to_string(), row.metric.to_string())).or_default().push(row.reading);
        }
    })?;
    Ok(found)
}

/// The readings of one source for one metric of one scope.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SampleSeries {
    pub source: String,
    pub scope: String,
    pub metric: String,
    /// `(at_ns, window_ns, value)` in order.
    pub readings: Vec<(u64, u64, Option<f64>)>,
}

/// Read the series of `samples.parquet` selected by `keep(source, scope, metric)`, in the order of their first readings.
pub fn read_series(path: &Path, keep: impl Fn(&str, &str, &str) -> bool) -> Result<Vec<SampleSeries>> {
    whole(path, || series_of(path, keep))
}

fn series_of(path: &Path, keep: impl Fn(&str, &str, &str) -> bool) -> Result<Vec<SampleSeries>> {
    let mut all: Vec<(bool, SampleSeries)> = Vec::new();
    let mut places = HashMap::new();
    // Every tick reads the same in the same order: the next row is mostly of the series behind the last one's.
    let mut place = 0;
    each_sample(path, |row| {
        let is_of = |(_, s): &(bool, SampleSeries)| s.metric == row.metric && s.scope == row.scope && s.source == row.source;
        place = if all.get(place + 1).is_some_and(is_of) {
            place + 1
        } else {
            *places.entry([row.source, row.scope, row.metric].map(String::from)).or_insert_with_key(|[source, scope, metric]| {
                let [source, scope, metric] = [source, scope, metric].map(String::clone);
                all.push((keep(row.source, row.scope, row.metric), SampleSeries { source, scope, metric, ..Default::default() }));
                all.len() - 1
            })
        };
        let (is_wanted, series) = &mut all[place];
        if *is_wanted {
            series.readings.push(row.reading);
        }
    })?;
    Ok(all.into_iter().filter(|(is_wanted, _)| *is_wanted).map(|(_, series)| series).collect())
}

/// One row of `samples.parquet`.
struct SampleRow<'a> {
    source: &'a str,
    scope: &'a str,
    metric: &'a str,
    reading: (u64, u64, Option<f64>),
}

fn each_sample(path: &Path, mut take: impl FnMut(SampleRow)) -> Result<()> {
    for batch in batches(path, &sample_schema())? {
        let (at, window) = (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_primitive::<Int64Type>());
        let (source, scope) = (batch.column(2).as_string::<i32>(), batch.column(3).as_string::<i32>());
        let (metric, value) = (batch.column(4).as_string::<i32>(), batch.column(5).as_primitive::<Float64Type>());
        for i in 0..batch.num_rows() {
            take(SampleRow {
                source: source.value(i),
                scope: scope.value(i),
                metric: metric.value(i),
                reading: (at.value(i) as u64, window.value(i) as u64, value.is_valid(i).then(|| value.value(i))),
            });
        }
    }
    Ok(())
}

/// Samples on their way to disk, in closed segments: a Parquet file has no content until it is closed, so a killed writer would
/// leave nothing. [`SampleWriter::finish`] merges them into one `samples.parquet`.
pub struct SampleWriter {
    folder: PathBuf,
    closed: Vec<PathBuf>,
    rows: Rows,
    opened_ns: u64,
}

/// A segment is closed after this many rows, or after 30 s.
const SEGMENT_ROWS: usize = 200_000;
const SEGMENT_NS: u64 = 30_000_000_000;

#[derive(Default)]
struct Rows {
    at: Int64Builder,
    window: Int64Builder,
    source: StringBuilder,
    scope: StringBuilder,
    metric: StringBuilder,
    value: Float64Builder,
    len: usize,
}

impl Rows {
    fn push(&mut self, s: &Sample) {
        self.at.append_value(s.at_ns as i64);
        self.window.append_value(s.window_ns as i64);
        self.source.append_value(s.source);
        self.scope.append_value(&s.scope);
        self.metric.append_value(s.metric);
        self.value.append_option(s.value.filter(|v| v.is_finite()));
        self.len += 1;
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        self.len = 0;
        vec![
            Arc::new(self.at.finish()),
            Arc::new(self.window.finish()),
            Arc::new(self.source.finish()),
            Arc::new(self.scope.finish()),
            Arc::new(self.metric.finish()),
            Arc::new(self.value.finish()),
        ]
    }
}

impl SampleWriter {
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        Ok(SampleWriter {
            folder: folder.to_path_buf(),
            closed: Vec::new(),
            rows: Rows::default(),
            opened_ns: crate::monotonic_ns(),
        })
    }

    /// Add samples; a value that is not finite is stored as absent.
    pub fn write(&mut self, samples: &[Sample]) -> Result<()> {
        for s in samples {
            self.rows.push(s);
        }
        let old = crate::monotonic_ns().saturating_sub(self.opened_ns) > SEGMENT_NS;
        if self.rows.len >= SEGMENT_ROWS || (old && self.rows.len > 0) {
            self.close_segment()?;
        }
        Ok(())
    }

    fn close_segment(&mut self) -> Result<()> {
        let path = self.folder.join(format!("samples-{:04}.parquet", self.closed.len()));
        let err = table_error(&path);
        let batch = RecordBatch::try_new(sample_schema(), self.rows.take()).map_err(|e| err(e.into()))?;
        let mut writer = writer(&path, sample_schema())?;
        writer.write(&batch).map_err(&err)?;
        writer.close().map_err(&err)?;
        self.closed.push(path);
        self.opened_ns = crate::monotonic_ns();
        Ok(())
    }

    /// Close the last segment and merge all into one `samples.parquet`.
    pub fn finish(mut self) -> Result<()> {
        if self.rows.len > 0 || self.closed.is_empty() {
            self.close_segment()?;
        }
        let whole = self.folder.join("samples.parquet");
        if let [only] = &self.closed[..] {
            fs::rename(only, whole)?;
            return Ok(());
        }
        let err = table_error(&whole);
        let mut writer = writer(&whole, sample_schema())?;
        for segment in &self.closed {
            for batch in batches(segment, &sample_schema())? {
                writer.write(&batch).map_err(&err)?;
            }
        }
        writer.close().map_err(&err)?;
        for segment in &self.closed {
            fs::remove_file(segment)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(at_ns: u64, value: Option<f64>) -> Sample {
        Sample { at_ns, window_ns: 5, source: "proc", scope: "member:0".into(), metric: "rss_bytes", value }
    }

    #[test]
    fn an_absent_reading_comes_back_absent_and_never_as_zero() {
        let dir = tempfile::tempdir().unwrap();
        let mut w = SampleWriter::create(dir.path()).unwrap();
        w.write(&[sample(1, Some(0.0)), sample(2, None), sample(3, Some(f64::NAN))]).unwrap();
        w.finish().unwrap();
        let found = read_samples(&dir.path().join("samples.parquet"), |_, _, m| m == "rss_bytes").unwrap();
        let rows = &found[&("member:0".to_string(), "rss_bytes".to_string())];
        assert_eq!(rows, &vec![(1, 5, Some(0.0)), (2, 5, None), (3, 5, None)]);
    }

    #[test]
    fn many_segments_become_one_table_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let mut w = SampleWriter::create(dir.path()).unwrap();
        for at in 0..3 {
            w.write(&[sample(at, Some(at as f64))]).unwrap();
            w.close_segment().unwrap();
        }
        assert!(dir.path().join("samples-0002.parquet").exists());
        w.finish().unwrap();
        let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["samples.parquet"]);
        let found = read_samples(&dir.path().join("samples.parquet"), |_, _, _| true).unwrap();
        assert_eq!(found.values().next().unwrap().iter().map(|r| r.0).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn readings_of_two_sources_of_one_metric_are_series_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let mut w = SampleWriter::create(dir.path()).unwrap();
        let of = |source, at_ns, value| Sample { source, ..sample(at_ns, value) };
        // Not every tick has every series, nor in one order.
        w.write(&[of("nvml", 1, Some(1.0)), of("dcgm", 1, Some(2.0)), of("proc", 1, Some(3.0))]).unwrap();
        w.write(&[of("dcgm", 2, None), of("nvml", 2, Some(4.0)), of("dcgm", 3, Some(5.0))]).unwrap();
        w.finish().unwrap();
        let found = read_series(&dir.path().join("samples.parquet"), |source, _, _| source != "proc").unwrap();
        let found: Vec<_> = found.iter().map(|s| (&*s.source, &*s.scope, &*s.metric, &s.readings[..])).collect();
        assert_eq!(
            found,
            [
                ("nvml", "member:0", "rss_bytes", &[(1, 5, Some(1.0)), (2, 5, Some(4.0))][..]),
                ("dcgm", "member:0", "rss_bytes", &[(1, 5, Some(2.0)), (2, 5, None), (3, 5, Some(5.0))][..]),
            ]
        );
    }

    #[test]
    fn a_run_without_samples_still_has_a_table() {
        let dir = tempfile::tempdir().unwrap();
        SampleWriter::create(dir.path()).unwrap().finish().unwrap();
        assert!(read_samples(&dir.path().join("samples.parquet"), |_, _, _| true).unwrap().is_empty());
    }
}
