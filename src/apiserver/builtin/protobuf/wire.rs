//! Reads the protobuf wire format: keys, numbers and lengths.

use super::ProtobufError;

/// A small, valid message; each access parses it again.
pub(super) struct Members<'b>(&'b [u8]);

impl<'b> Members<'b> {
    pub(super) fn of(bytes: &'b [u8]) -> Result<Self, ProtobufError> {
        let mut reader = Reader { rest: bytes };
        while reader.next()?.is_some() {}
        Ok(Self(bytes))
    }

    /// Returns the members with the field number `wanted`, in order.
    pub(super) fn all(&self, wanted: u32) -> impl Iterator<Item = Wire<'b>> + use<'b> {
        let mut reader = Reader { rest: self.0 };
        let members = std::iter::from_fn(move || reader.next().ok().flatten());
        members.filter(move |(number, _)| *number == wanted).map(|(_, wire)| wire)
    }

    pub(super) fn number(&self, wanted: u32) -> i64 {
        let found = self.all(wanted).find_map(|wire| match wire {
            Wire::Varint(value) => Some(value.cast_signed()),
            _ => None,
        });
        found.unwrap_or_default()
    }

    pub(super) fn bytes(&self, wanted: u32) -> &'b [u8] {
        let found = self.all(wanted).find_map(|wire| match wire {
            Wire::Bytes(bytes) => Some(bytes),
            _ => None,
        });
        found.unwrap_or_default()
    }

    pub(super) fn text(&self, wanted: u32) -> Result<String, ProtobufError> {
        text(self.bytes(wanted))
    }
}

pub(super) enum Wire<'b> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'b [u8]),
    /// Never used by a field of a built-in kind.
    Fixed32,
}

pub(super) struct Reader<'b> {
    pub(super) rest: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(super) fn next(&mut self) -> Result<Option<(u32, Wire<'b>)>, ProtobufError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).map_err(|_| ProtobufError::Varint)?;
        let wire = match key & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => {
                let bytes = self.take(8)?;
                Wire::Fixed64(bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
            }
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| ProtobufError::Truncated)?;
                Wire::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                Wire::Fixed32
            }
            other => return Err(ProtobufError::WireType(u8::try_from(other).unwrap_or_default())),
        };
        Ok(Some((number, wire)))
    }

    fn varint(&mut self) -> Result<u64, ProtobufError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(ProtobufError::Truncated)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ProtobufError::Varint)
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], ProtobufError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(ProtobufError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }
}

pub(super) fn text(bytes: &[u8]) -> Result<String, ProtobufError> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| ProtobufError::Utf8)
}
