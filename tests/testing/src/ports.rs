//! Ports for servers that are told theirs instead of taking a free one.

use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below every port that Linux gives by itself (`ip_local_port_range` begins at 32768): to a connection that goes out, or to a
/// server that asks for any port. A port from there may be somebody's before the server that was told it listens.
const PORTS: Range<u16> = 12_000..32_000;
/// How many ports one test program has for itself: the first is held for as long as it runs, which tells the other programs.
const BLOCK: u16 = 100;

struct Block {
    _held: TcpListener,
    first: u16,
    next: AtomicU16,
}

/// A port of 127.0.0.1 that nobody listens on, and that nobody else is told of: the same again after 99 others. Nothing where servers
/// listen on all of them, or 200 programs run.
#[must_use]
pub fn free_port() -> Option<u16> {
    static OURS: OnceLock<Option<Block>> = OnceLock::new();
    let block = OURS.get_or_init(Block::claim).as_ref()?;
    let mut ports =
        (1..BLOCK).map(|_| block.first + 1 + block.next.fetch_add(1, Ordering::Relaxed) % (BLOCK - 1));
    ports.find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
}

impl Block {
    fn claim() -> Option<Self> {
        PORTS.step_by(usize::from(BLOCK)).find_map(|first| {
            let held = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).ok()?;
            Some(Self { _held: held, first, next: AtomicU16::new(0) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_given_once() {
        let ports: Vec<u16> = (0..10).map(|_| free_port().unwrap()).collect();
        assert!(ports.is_sorted_by(|one, next| one < next), "{ports:?}");
        for port in ports {
            assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok());
            assert!(PORTS.contains(&port));
        }
    }

    #[test]
    fn another_program_gets_another_block() {
        let (one, other) = (Block::claim().unwrap(), Block::claim().unwrap());
        assert_ne!(one.first, other.first);
    }
}
