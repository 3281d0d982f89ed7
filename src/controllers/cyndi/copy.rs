//! Decodes the ids of a binary PostgreSQL COPY of one column of type uuid, however the bytes are split into messages.
//! Pure.
//!
//! INVARIANT: only the server's trailer is the end. A stream that stops before it is an error.

use bytes::{Buf, Bytes, BytesMut};
use uuid::Uuid;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// The length of the signature, flags, and extension length.
const HEADER: usize = 19;
/// The length of a row: the number of columns, the length of the only one, and its bytes.
const ROW: usize = 2 + 4 + 16;
/// The longest header extension that is skipped. No version of PostgreSQL sends any.
const MAX_EXTENSION: usize = 1024;

/// A malformed or truncated stream.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq)]
#[error("the stream of ids is broken: {0}")]
pub struct Broken(&'static str);

/// An incremental decoder.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: BytesMut,
    stage: Stage,
}

#[derive(Debug, Default, PartialEq)]
enum Stage {
    #[default]
    Header,
    Rows,
    Ended,
}

impl Decoder {
    pub fn feed(&mut self, bytes: &Bytes) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next complete id; None if more bytes are needed, or the stream has ended.
    ///
    /// # Errors
    /// [`Broken`] when the bytes are malformed.
    pub fn take_id(&mut self) -> Result<Option<Uuid>, Broken> {
        if self.stage == Stage::Header && !self.header()? {
            return Ok(None);
        }
        if self.stage == Stage::Ended {
            return if self.buffer.is_empty() { Ok(None) } else { Err(Broken("it goes on after its end")) };
        }
        let Some(columns) = self.buffer.first_chunk::<2>().map(|bytes| i16::from_be_bytes(*bytes)) else {
            return Ok(None);
        };
        match columns {
            -1 => {
                self.buffer.advance(2);
                self.stage = Stage::Ended;
                self.take_id()
            }
            1 => self.row(),
            _ => Err(Broken("a row has not one column")),
        }
    }

    fn row(&mut self) -> Result<Option<Uuid>, Broken> {
        let Some(row) = self.buffer.first_chunk::<ROW>() else { return Ok(None) };
        let [_, _, length @ ..] = row;
        let (length, id) = length.split_first_chunk::<4>().ok_or(Broken("a row is too short"))?;
        if i32::from_be_bytes(*length) != 16 {
            return Err(Broken("a column is no uuid"));
        }
        let id = Uuid::from_slice(id).map_err(|_| Broken("a column is no uuid"))?;
        self.buffer.advance(ROW);
        Ok(Some(id))
    }

    fn header(&mut self) -> Result<bool, Broken> {
        let Some(header) = self.buffer.first_chunk::<HEADER>() else { return Ok(false) };
        let Some(extension) = header.strip_prefix(SIGNATURE).and_then(|rest| rest.last_chunk::<4>()) else {
            return Err(Broken("it does not begin as a binary COPY does"));
        };
        let extension = u32::from_be_bytes(*extension) as usize;
        if extension > MAX_EXTENSION {
            return Err(Broken("its header is too long"));
        }
        if self.buffer.len() < HEADER + extension {
            return Ok(false);
        }
        self.buffer.advance(HEADER + extension);
        self.stage = Stage::Rows;
        Ok(true)
    }

    /// Checks that the stream is complete; call it after the last bytes.
    ///
    /// # Errors
    /// [`Broken`] when the stream has not ended.
    pub fn end(&self) -> Result<(), Broken> {
        if self.stage == Stage::Ended { Ok(()) } else { Err(Broken("it stops before its end")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(ids: &[u128]) -> Vec<u8> {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([0; 8]);
        for id in ids {
            bytes.extend([0, 1, 0, 0, 0, 16]);
            bytes.extend(id.to_be_bytes());
        }
        bytes.extend([0xff, 0xff]);
        bytes
    }

    fn decoded(bytes: &[u8], piece: usize) -> Result<Vec<u128>, Broken> {
        let (mut decoder, mut ids) = (Decoder::default(), Vec::new());
        for part in bytes.chunks(piece) {
            decoder.feed(&Bytes::copy_from_slice(part));
            while let Some(id) = decoder.take_id()? {
                ids.push(id.as_u128());
            }
        }
        decoder.end().map(|()| ids)
    }

    #[test]
    fn ids_are_read_however_the_bytes_are_cut() {
        let bytes = stream(&[1, 2, u128::MAX]);
        for piece in 1..=bytes.len() {
            assert_eq!(decoded(&bytes, piece), Ok(vec![1, 2, u128::MAX]), "{piece}");
        }
        assert_eq!(decoded(&stream(&[]), 7), Ok(vec![]));
    }

    #[test]
    fn cy_09_04_every_stream_that_is_cut_off_is_broken() {
        let bytes = stream(&[1, 2]);
        for end in 1..bytes.len() {
            assert!(decoded(&bytes[..end], 64).is_err(), "{end}");
        }
        let mut more = bytes;
        more.push(0);
        assert!(decoded(&more, 64).is_err());
    }

    #[test]
    fn other_streams_are_refused() {
        let with = |at: usize, byte: u8| {
            let mut bytes = stream(&[1, 2]);
            bytes[at] = byte;
            bytes
        };
        for wrong in [with(0, b'X'), with(15, 0xff), with(20, 2), with(24, 15)] {
            assert!(decoded(&wrong, 64).is_err(), "{wrong:?}");
        }
    }
}
