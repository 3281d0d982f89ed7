//! Implements cel-go's encoders, which Kubernetes does not offer.

use admit_apimachinery::go::base64::{self, Alphabet, Padding};

use crate::library::{Context, Overload, mismatch};
use crate::value::{EvalError, Value};

pub(in crate::library) const ROWS: &[Overload] = &[
    Overload::new(
        "base64_decode_string",
        "base64.decode(string) -> bytes",
        decode,
        "Reads base64 in the standard alphabet, with padding or without.",
    ),
    Overload::new(
        "base64_encode_bytes",
        "base64.encode(bytes) -> string",
        |context, args| match args {
            [Value::Bytes(bytes)] => {
                context.reserve(bytes.len().saturating_mul(2))?;
                context.text(&base64::encode(bytes))
            }
            _ => mismatch(),
        },
        "Base64 in the standard alphabet, with padding.",
    ),
];

fn decode<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::String(text)] = args else { return mismatch() };
    context.reserve(text.len())?;
    let bytes = base64::decode(text, Alphabet::Standard, Padding::Required)
        .or_else(|_| base64::decode(text, Alphabet::Standard, Padding::Absent))
        .map_err(|at| EvalError::other(format!("illegal base64 data at input byte {at}")))?;
    context.joined_bytes(&bytes, b"")
}
