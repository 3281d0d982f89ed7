//! A TLS connection whose peer may close it without saying that it does, as many small servers do. Go takes that for the end of what
//! was sent; for rustls it is an error. What says how long it is must still be whole; what does not may have been cut off.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection that ends where its peer closed it, announced or not.
#[derive(Debug)]
pub struct EndsClosed<S>(pub S);

impl<S: AsyncRead + Unpin> AsyncRead for EndsClosed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.0).poll_read(cx, buf) {
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
            polled => polled,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for EndsClosed<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;

    /// Fails in this way when it is read.
    struct Fails(io::ErrorKind);

    impl AsyncRead for Fails {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(self.0.into()))
        }
    }

    #[tokio::test]
    async fn only_an_end_that_was_not_announced_is_an_end() {
        let read = async |kind| EndsClosed(Fails(kind)).read(&mut [0; 8]).await.map_err(|error| error.kind());
        assert_eq!(read(io::ErrorKind::UnexpectedEof).await, Ok(0));
        assert_eq!(read(io::ErrorKind::ConnectionReset).await, Err(io::ErrorKind::ConnectionReset));
    }
}
