//! The file of a table for the library that reads Parquet. In: a regular file. Out: its bytes, and an error where a page claims to be
//! larger than any page of a table is: the library allocates what a page claims before it reads the page.

use std::fs::File;
use std::io::BufReader;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};

/// Pages have 1 MiB by default, or the longest text in them.
const PAGE_MOST_BYTES: u64 = 64 << 20;
/// A page's header begins with its kind and its size without compression: two fields of at most six bytes each.
const SIZES_BYTES: u64 = 12;
/// A file ends with the size of what describes it, and a magic number.
const FOOTER_BYTES: u64 = 8;

/// The file of a table, with the sizes that it claims checked.
pub struct BoundedFile(pub File);

impl Length for BoundedFile {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl ChunkReader for BoundedFile {
    type T = BufReader<File>;

    /// Called for the footer, for the header of each page, and for nothing else.
    fn get_read(&self, start: u64) -> Result<Self::T> {
        if start.checked_add(FOOTER_BYTES) == Some(self.len()) {
            return self.0.get_read(start);
        }
        let head = self.get_bytes(start, self.len().saturating_sub(start).min(SIZES_BYTES) as usize)?;
        match page_bytes(&head) {
            Some(bytes) if bytes <= PAGE_MOST_BYTES => self.0.get_read(start),
            Some(bytes) => Err(ParquetError::General(format!("a page claims to have {bytes} bytes"))),
            None => Err(ParquetError::General("a page has no size".into())),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        if start.checked_add(length as u64).is_none_or(|end| end > self.len()) {
            return Err(ParquetError::EOF(format!("{length} bytes from {start} on are not in the file")));
        }
        self.0.get_bytes(start, length)
    }
}

/// The size that the header of a page begins with: `PageHeader` of apache/parquet-format, `parquet.thrift`, in Thrift's compact protocol. Both of its first fields
/// are an `i32` whose number is one more than that of the field before (0x15), as a variable-length number whose last bit is the sign.
fn page_bytes(head: &[u8]) -> Option<u64> {
    let (_, rest) = number(head.strip_prefix(&[0x15])?)?;
    let (zigzag, _) = number(rest.strip_prefix(&[0x15])?)?;
    (zigzag & 1 == 0).then_some(zigzag >> 1)
}

/// A number of seven bits a byte, the lowest first, and what is behind it.
fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let last = bytes.iter().take(5).position(|byte| byte & 0x80 == 0)?;
    let (own, rest) = bytes.split_at(last + 1);
    Some((own.iter().rev().fold(0, |all, byte| all << 7 | u64::from(byte & 0x7f)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_size_that_its_header_begins_with() {
        // A data page (0) of 150 bytes; one of 2³¹ − 1; one of −1.
        assert_eq!(page_bytes(&[0x15, 0x00, 0x15, 0xac, 0x02, 0x15]), Some(150));
        assert_eq!(page_bytes(&[0x15, 0x00, 0x15, 0xfe, 0xff, 0xff, 0xff, 0x0f]), Some(i32::MAX as u64));
        assert_eq!(page_bytes(&[0x15, 0x00, 0x15, 0x01]), None);
        assert_eq!([page_bytes(&[]), page_bytes(&[0x15, 0x00]), page_bytes(&[0x05, 0x02, 0x00])], [None; 3]);
    }
}
