//! Reads and writes messages over standard input and output, within limits: the library's own transport allocates memory for
//! whatever length a header claims, and ends at the first message that is not JSON.

use std::io::{self, BufRead, Read as _};
use std::thread::{self, JoinHandle};

use crossbeam_channel::bounded;
use lsp_server::{Connection, Message, Response};
use thiserror::Error;

/// The largest message in bytes: a document of the largest size for manifests, with JSON escapes.
const MAX_MESSAGE: usize = 40 * 1024 * 1024;
/// The longest header line in bytes.
const MAX_HEADER: u64 = 4_096;
/// The most messages in a queue.
const MAX_WAITING: usize = 64;
/// The JSON-RPC error code for invalid JSON.
const PARSE_ERROR: i32 = -32_700;

/// Opens a connection over the standard streams; also returns the thread that writes.
pub(super) fn stdio() -> io::Result<(Connection, JoinHandle<()>)> {
    let (to_server, receiver) = bounded::<Message>(MAX_WAITING);
    let (sender, from_server) = bounded::<Message>(MAX_WAITING);
    let to_client = sender.clone();
    thread::Builder::new().name("lsp-reader".to_owned()).spawn(move || {
        let mut stdin = io::stdin().lock();
        loop {
            let message = match read(&mut stdin) {
                Ok(Some(Ok(message))) => message,
                Ok(Some(Err(problem))) => {
                    let id = 0.into();
                    // Without an id the response refers to no request; its text says what it is about.
                    if to_client.send(Response::new_err(id, PARSE_ERROR, problem.to_string()).into()).is_err()
                    {
                        return;
                    }
                    continue;
                }
                Ok(None) | Err(_) => return,
            };
            let is_exit = matches!(&message, Message::Notification(told) if told.method == "exit");
            if to_server.send(message).is_err() || is_exit {
                return;
            }
        }
    })?;
    let writer = thread::Builder::new().name("lsp-writer".to_owned()).spawn(move || {
        let mut stdout = io::stdout().lock();
        for message in from_server {
            if message.write(&mut stdout).is_err() {
                return;
            }
        }
    })?;
    Ok((Connection { sender, receiver }, writer))
}

/// Why input is not a message; reading continues with the next one.
#[derive(Debug, Error)]
enum MessageError {
    #[error("a message of {0} bytes is too long: {MAX_MESSAGE} are taken")]
    TooLong(u64),
    #[error("no message: {0}")]
    Invalid(serde_json::Error),
}

/// Reads the next message, or what is wrong with it; None at the end of the stream.
///
/// # Errors
/// When reading fails, or a header has no length, so that the start of the next message is unknown.
fn read(stream: &mut impl BufRead) -> io::Result<Option<Result<Message, MessageError>>> {
    let Some(length) = header(stream)? else { return Ok(None) };
    if length > MAX_MESSAGE {
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        io::copy(&mut stream.take(length), &mut io::sink())?;
        return Ok(Some(Err(MessageError::TooLong(length))));
    }
    let mut bytes = Vec::new();
    stream.take(u64::try_from(length).unwrap_or(u64::MAX)).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&bytes).map_err(MessageError::Invalid)))
}

fn header(stream: &mut impl BufRead) -> io::Result<Option<usize>> {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        stream.take(MAX_HEADER).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            let missing = || io::Error::new(io::ErrorKind::InvalidData, "no Content-Length");
            return length.map(Some).ok_or_else(missing);
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("Content-Length")
        {
            length = value.trim().parse().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_MESSAGE, read};

    #[test]
    fn a_message_that_is_none_does_not_hide_the_next_one() {
        let long = "x".repeat(MAX_MESSAGE + 1);
        let good = r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#;
        let text = format!(
            "Content-Length: 3\r\n\r\n{{a}}content-length:{}\r\n\r\n{long}Content-Type: x\r\nContent-Length: {}\r\n\r\n{good}",
            long.len(),
            good.len(),
        );
        let mut stream = text.as_bytes();
        let mut next = || read(&mut stream).unwrap();
        assert!(next().unwrap().unwrap_err().to_string().starts_with("no message: "));
        assert!(next().unwrap().unwrap_err().to_string().contains("is too long"));
        assert!(next().unwrap().is_ok());
        assert!(next().is_none());
        assert!(read(&mut "Content-Lend: 3\r\n\r\n".as_bytes()).is_err());
        assert!(read(&mut "Content-Length: 9\r\n\r\nab".as_bytes()).unwrap().is_none(), "it was cut");
    }
}
