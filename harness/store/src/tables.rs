//! The tables of a run: `epochs.parquet`, `samples.parquet` (long and narrow: a new metric is a row, never a column), and, if a
//! member serves, `requests.parquet`.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, UInt32Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use fs_err as fs;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::{Error, Result, caught, open_regular, place};

/// One pass of one member over its data.
#[derive(Debug, Clone, PartialEq)]
pub struct EpochRecord {
    pub member: u32,
    /// 0 is the warm-up epoch; those past the measured ones are tail.
    pub index: u32,
    pub measured: bool,
    pub items: Option<u64>,
    /// `CLOCK_MONOTONIC`, as the member read it.
    pub start_ns: u64,
    pub end_ns: u64,
    pub loss: Option<f64>,
}

/// One request to a member that serves, nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRecord {
    pub member: u32,
    /// When the schedule sent it, whether or not the member had time for it: latency counts from here.
    pub arrival_ns: u64,
    /// When its batch started; `None` if it was still waiting when the member was stopped.
    pub start_ns: Option<u64>,
    /// When its answer was complete; `None` if the member was stopped before.
    pub end_ns: Option<u64>,
}

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

fn epoch_schema() -> Arc<Schema> {
    Arc::new(Schema::new(vec![
        Field::new("member", DataType::UInt32, false),
        Field::new("index", DataType::UInt32, false),
        Field::new("measured", DataType::Boolean, false),
        Field::new("items", DataType::Int64, true),
        Field::new("start_ns", DataType::Int64, false),
        Field::new("end_ns", DataType::Int64, false),
        Field::new("loss", DataType::Float64, true),
    ]))
}

fn request_schema() -> Arc<Schema> {
    Arc::new(Schema::new(vec![
        Field::new("member", DataType::UInt32, false),
        Field::new("arrival_ns", DataType::Int64, false),
        Field::new("start_ns", DataType::Int64, true),
        Field::new("end_ns", DataType::Int64, true),
    ]))
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

fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).unwrap_or_default()))
        .set_created_by(format!("collo {}", env!("CARGO_PKG_VERSION")))
        .build()
}

fn table_error(path: &Path) -> impl Fn(ParquetError) -> Error + use<> {
    let path = path.to_path_buf();
    move |source| Error::Table { path: path.clone(), source }
}

fn writer(path: &Path, schema: Arc<Schema>) -> Result<ArrowWriter<std::fs::File>> {
    let file = place::fresh_file(path)?.into_file();
    ArrowWriter::try_new(file, schema, Some(properties())).map_err(table_error(path))
}

/// Write `epochs.parquet`.
pub fn write_epochs(path: &Path, epochs: &[EpochRecord]) -> Result<()> {
    let (mut member, mut index, mut measured) = (UInt32Builder::new(), UInt32Builder::new(), BooleanBuilder::new());
    let (mut items, mut start, mut end) = (Int64Builder::new(), Int64Builder::new(), Int64Builder::new());
    let mut loss = Float64Builder::new();
    for e in epochs {
        member.append_value(e.member);
        index.append_value(e.index);
        measured.append_value(e.measured);
        items.append_option(e.items.map(|i| i as i64));
        start.append_value(e.start_ns as i64);
        end.append_value(e.end_ns as i64);
        loss.append_option(e.loss);
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(member.finish()),
        Arc::new(index.finish()),
        Arc::new(measured.finish()),
        Arc::new(items.finish()),
        Arc::new(start.finish()),
        Arc::new(end.finish()),
        Arc::new(loss.finish()),
    ];
    write_table(path, epoch_schema(), columns)
}

/// Write a table of one batch.
pub(crate) fn write_table(path: &Path, schema: Arc<Schema>, columns: Vec<ArrayRef>) -> Result<()> {
    let err = table_error(path);
    let batch = RecordBatch::try_new(schema.clone(), columns).map_err(|e| err(e.into()))?;
    let mut writer = writer(path, schema)?;
    writer.write(&batch).map_err(&err)?;
    writer.close().map_err(&err)?;
    Ok(())
}

/// Read `epochs.parquet`.
pub fn read_epochs(path: &Path) -> Result<Vec<EpochRecord>> {
    whole(path, || epochs_of(path))
}

fn epochs_of(path: &Path) -> Result<Vec<EpochRecord>> {
    let mut epochs = Vec::new();
    for batch in batches(path, &epoch_schema())? {
        let (member, index) = (batch.column(0).as_primitive::<UInt32Type>(), batch.column(1).as_primitive::<UInt32Type>());
        let measured = batch.column(2).as_boolean();
        let (items, start) = (batch.column(3).as_primitive::<Int64Type>(), batch.column(4).as_primitive::<Int64Type>());
        let (end, loss) = (batch.column(5).as_primitive::<Int64Type>(), batch.column(6).as_primitive::<Float64Type>());
        epochs.extend((0..batch.num_rows()).map(|i| EpochRecord {
            member: member.value(i),
            index: index.value(i),
            measured: measured.value(i),
            items: items.is_valid(i).then(|| items.value(i) as u64),
            start_ns: start.value(i) as u64,
            end_ns: end.value(i) as u64,
            loss: loss.is_valid(i).then(|| loss.value(i)),
        }));
    }
    Ok(epochs)
}

/// Write `requests.parquet`.
pub fn write_requests(path: &Path, requests: &[RequestRecord]) -> Result<()> {
    let (mut member, mut arrival) = (UInt32Builder::new(), Int64Builder::new());
    let (mut start, mut end) = (Int64Builder::new(), Int64Builder::new());
    for r in requests {
        member.append_value(r.member);
        arrival.append_value(r.arrival_ns as i64);
        start.append_option(r.start_ns.map(|ns| ns as i64));
        end.append_option(r.end_ns.map(|ns| ns as i64));
    }
    let columns: Vec<ArrayRef> =
        vec![Arc::new(member.finish()), Arc::new(arrival.finish()), Arc::new(start.finish()), Arc::new(end.finish())];
    write_table(path, request_schema(), columns)
}

/// Read `requests.parquet`.
pub fn read_requests(path: &Path) -> Result<Vec<RequestRecord>> {
    whole(path, || requests_of(path))
}

fn requests_of(path: &Path) -> Result<Vec<RequestRecord>> {
    let mut requests = Vec::new();
    for batch in batches(path, &request_schema())? {
        let (member, arrival) = (batch.column(0).as_primitive::<UInt32Type>(), batch.column(1).as_primitive::<Int64Type>());
        let (start, end) = (batch.column(2).as_primitive::<Int64Type>(), batch.column(3).as_primitive::<Int64Type>());
        requests.extend((0..batch.num_rows()).map(|i| RequestRecord {
            member: member.value(i),
            arrival_ns: arrival.value(i) as u64,
            start_ns: start.is_valid(i).then(|| start.value(i) as u64),
            end_ns: end.is_valid(i).then(|| end.value(i) as u64),
        }));
    }
    Ok(requests)
}

/// Readings `(at_ns, window_ns, value)` in order, by `(scope, metric)`.
pub type Readings = BTreeMap<(String, String), Vec<(u64, u64, Option<f64>)>>;

/// Read the values of `samples.parquet` selected by `keep(source, scope, metric)`, from any source.
pub fn read_samples(path: &Path, keep: impl Fn(&str, &str, &str) -> bool) -> Result<Readings> {
    whole(path, || samples_of(path, keep))
}

/// A damaged table is an error, even if the library that reads it panics.
pub(crate) fn whole<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    caught(read).unwrap_or_else(|why| Err(Error::corrupt(path, why)))
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

pub(crate) fn batches(path: &Path, schema: &Schema) -> Result<Vec<RecordBatch>> {
    let file = open_regular(path)?.into_file();
    let err = table_error(path);
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(&err)?;
    if builder.schema().fields() != schema.fields() {
        return Err(Error::corrupt(path, "its columns do not match this table"));
    }
    let reader = builder.build().map_err(&err)?;
    reader.map(|b| b.map_err(|e| err(e.into()))).collect()
}

/// Rows of a table, of whatever columns.
pub(crate) fn rows(path: &Path) -> Result<i64> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(open_regular(path)?.into_file()).map_err(table_error(path))?;
    Ok(builder.metadata().file_metadata().num_rows())
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

    #[test]
    fn epochs_come_back_as_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("epochs.parquet");
        let epochs = [
            EpochRecord { member: 0, index: 0, measured: false, items: None, start_ns: 1, end_ns: 9, loss: None },
            EpochRecord { member: 1, index: 1, measured: true, items: Some(1024), start_ns: 9, end_ns: 20, loss: Some(1.5) },
        ];
        write_epochs(&path, &epochs).unwrap();
        assert_eq!(read_epochs(&path).unwrap(), epochs);
        std::fs::write(&path, "not parquet").unwrap();
        assert!(read_epochs(&path).unwrap_err().to_string().contains("epochs.parquet"));
    }

    #[test]
    fn a_request_that_was_never_answered_comes_back_without_an_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("requests.parquet");
        let requests = [
            RequestRecord { member: 0, arrival_ns: 5, start_ns: Some(6), end_ns: Some(9) },
            RequestRecord { member: 0, arrival_ns: 8, start_ns: Some(9), end_ns: None },
            RequestRecord { member: 2, arrival_ns: 9, start_ns: None, end_ns: None },
        ];
        write_requests(&path, &requests).unwrap();
        assert_eq!(read_requests(&path).unwrap(), requests);
    }
}
