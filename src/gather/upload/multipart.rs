//! The form that carries an archive: the part `file`, then the part `metadata`, in this order.

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::json;

/// Routes the archive to its service; parsed as `application/vnd.redhat.<service>.<category>`.
pub(super) const ARCHIVE_TYPE: &str = "application/vnd.redhat.openshift.periodic";

pub(super) struct Form {
    pub(super) content_type: String,
    pub(super) body: Bytes,
}

pub(super) fn form(archive: &[u8], gathered: Timestamp) -> Form {
    let boundary = boundary();
    let metadata =
        json!({"custom_metadata": {"gathering_time": gathered.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()}});
    let mut body = Vec::with_capacity(archive.len() + 1024);
    let mut part = |name: &str, file: &str, kind: &str, content: &[u8]| {
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{file}\"\r\n\
             Content-Type: {kind}\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    };
    part("file", "payload.tar.gz", ARCHIVE_TYPE, archive);
    part("metadata", "metadata.json", "application/octet-stream", metadata.to_string().as_bytes());
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    Form { content_type: format!("multipart/form-data; boundary={boundary}"), body: body.into() }
}

/// Random, so that no archive can hold it.
fn boundary() -> String {
    format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
}
