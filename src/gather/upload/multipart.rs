//! Encodes the form with an archive: the part `file`, then the part `metadata`, in this order. The archive's file is read
//! as fast as the service accepts it.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use jiff::Timestamp;
use serde_json::json;
use tokio::fs::File;
use tokio::io::{AsyncRead, ReadBuf};

use super::Body;

/// The media type by which the archive is routed; parsed as `application/vnd.redhat.<service>.<category>`.
pub(super) const ARCHIVE_TYPE: &str = "application/vnd.redhat.openshift.periodic";
/// How many bytes of an archive are in memory at a time: a few round trips' worth, and little for each of many uploads.
const PIECE: usize = 64 * 1024;

pub(super) struct Form {
    pub(super) content_type: String,
    pub(super) body: Body,
}

/// Creates the form with the first `size` bytes of `archive`.
pub(super) fn form(mut archive: File, size: u64, gathered: Timestamp) -> Form {
    let boundary = boundary();
    let metadata =
        json!({"custom_metadata": {"gathering_time": gathered.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()}});
    let head = |name: &str, file: &str, kind: &str| {
        format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{file}\"\r\n\
             Content-Type: {kind}\r\n\r\n"
        )
    };
    let tail = format!(
        "\r\n{}{metadata}\r\n--{boundary}--\r\n",
        head("metadata", "metadata.json", "application/octet-stream")
    );
    archive.set_max_buf_size(PIECE);
    let body = Sending {
        head: head("file", "payload.tar.gz", ARCHIVE_TYPE).into(),
        archive,
        left: size,
        tail: tail.into(),
    };
    Form { content_type: format!("multipart/form-data; boundary={boundary}"), body: body.boxed_unsync() }
}

/// The part of a form that is still to be sent.
struct Sending {
    head: Bytes,
    archive: File,
    /// The remaining bytes of the archive.
    left: u64,
    tail: Bytes,
}

impl HttpBody for Sending {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if !self.head.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.head)))));
        }
        if self.left > 0 {
            let mut piece = vec![0; usize::try_from(self.left).unwrap_or(PIECE).min(PIECE)];
            let mut read = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut self.archive).poll_read(context, &mut read))?;
            let length = read.filled().len();
            if length == 0 {
                let why = "the archive became shorter while it was sent";
                return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::UnexpectedEof, why))));
            }
            piece.truncate(length);
            self.left -= length as u64;
            return Poll::Ready(Some(Ok(Frame::data(piece.into()))));
        }
        let tail = std::mem::take(&mut self.tail);
        Poll::Ready((!tail.is_empty()).then(|| Ok(Frame::data(tail))))
    }

    fn is_end_stream(&self) -> bool {
        self.tail.is_empty()
    }

    /// The size is exact, so that the request has a Content-Length: the service rejects forms without one.
    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.head.len() as u64 + self.left + self.tail.len() as u64)
    }
}

/// Returns a random boundary, so that no archive can contain it.
fn boundary() -> String {
    format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
}
