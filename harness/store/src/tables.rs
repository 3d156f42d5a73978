//! The tables of a run: `epochs.parquet`, `samples.parquet` (long and narrow: a new metric is a row, never a column), and, if a
//! member serves, `requests.parquet`.

mod bounded;
mod samples;

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, UInt32Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

pub use bounded::BoundedFile;
pub use samples::{Readings, Sample, SampleSeries, SampleWriter, read_samples, read_series};

use crate::{Error, Result, caught, place};
use collo_text::open_regular;

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

/// A damaged table is an error, even if the library that reads it panics.
pub(crate) fn whole<T>(path: &Path, read: impl FnOnce() -> Result<T>) -> Result<T> {
    caught(read).unwrap_or_else(|why| Err(Error::corrupt(path, why)))
}

pub(crate) fn batches(path: &Path, schema: &Schema) -> Result<Vec<RecordBatch>> {
    let file = BoundedFile(open_regular(path)?.into_file());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_claims_to_be_huge_is_an_error_before_memory_is_taken_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("epochs.parquet");
        let epoch = EpochRecord { member: 7, index: 0, measured: true, items: None, start_ns: 1, end_ns: 9, loss: None };
        write_epochs(&path, &[epoch]).unwrap();
        let mut forged = std::fs::read(&path).unwrap();
        // The first page follows the magic number; its header has its kind, then its size.
        assert_eq!((forged[4], forged[6]), (0x15, 0x15));
        forged[7..12].copy_from_slice(&[0xfe, 0xff, 0xff, 0xff, 0x0f]);
        std::fs::write(&path, forged).unwrap();
        let refused = read_epochs(&path).unwrap_err().to_string();
        assert!(refused.contains("a page claims to have 2147483647 bytes"), "{refused}");
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
