//! Runs `admit supervise`, the process between the node and a container's program, which is started by the node and not by users.
//!
//! It receives what to run over a socket, which is its standard input, and reports the result over the same socket. When the
//! socket closes for any reason, everything that the container started is killed: no process outlives the node. It has no
//! threads before namespaces are created, because the kernel refuses that for a process with several.
//! May use: nothing of ours.

mod cgroup_entry;
mod children;
mod exec;
mod mounts;
pub(super) mod protocol;

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::num::TryFromIntError;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

use self::cgroup_entry::CgroupEntry;
use self::exec::ExecCommands;
use self::mounts::MountError;
use self::protocol::{Order, Report, Word};

/// Why a supervisor cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum SuperviseError {
    #[error(
        "standard input is not the socket of a node: {0}; this command is started by `admit up`, not by hand"
    )]
    Socket(#[source] std::io::Error),
    #[error("cannot adopt what the container leaves behind: {0}")]
    Adopt(#[source] nix::Error),
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
}

/// Runs what the node orders, and returns when all its processes have ended.
///
/// # Errors
/// When standard input is not a socket, or the kernel refuses.
pub fn run() -> Result<(), SuperviseError> {
    let socket = std::io::stdin().as_fd().try_clone_to_owned().map_err(SuperviseError::Socket)?;
    let socket = UnixStream::from(socket);
    let mut words = BufReader::new(socket.try_clone().map_err(SuperviseError::Socket)?);
    let mut line = String::new();
    words.read_line(&mut line).map_err(SuperviseError::Socket)?;
    let mut order: Order = serde_json::from_str(&line).map_err(|error| {
        SuperviseError::Socket(std::io::Error::new(std::io::ErrorKind::InvalidData, error))
    })?;
    // Orphans of the container become children of this process, and can be found.
    nix::sys::prctl::set_child_subreaper(true).map_err(SuperviseError::Adopt)?;
    let doors = match CgroupEntry::open(&order) {
        Ok(doors) => doors,
        Err(error) => {
            tell(&socket, &Report::Failed { message: format!("cannot use its control group: {error}") });
            return Ok(());
        }
    };
    let unmounted = match mounts::enter(&order) {
        Ok(()) => None,
        Err(error @ MountError::Namespace(_)) => {
            order.env.append(&mut order.unmounted);
            Some(error.to_string())
        }
        Err(error) => {
            tell(&socket, &Report::Failed { message: error.to_string() });
            return Ok(());
        }
    };
    let child = match start(&order, &doors) {
        Ok(child) => child,
        Err(error) => {
            tell(&socket, &Report::Failed { message: error.to_string() });
            return Ok(());
        }
    };
    tell(&socket, &Report::Started { pid: child.as_raw(), unmounted });
    let errands = ExecCommands::new(order, doors, socket.try_clone().map_err(SuperviseError::Socket)?);
    let for_node = errands.clone();
    std::thread::Builder::new()
        .spawn(move || obey(words, child, &for_node))
        .map_err(SuperviseError::Thread)?;
    let ended = children::wait_for(child, |pid, code| errands.ended(pid, code));
    children::kill_all();
    tell(&socket, &ended);
    Ok(())
}

/// Creates a command for a program in the environment of the container.
fn command(order: &Order, program: &Path, args: &[String]) -> Command {
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(order.env.iter().map(|(name, value)| (name, value)));
    command.current_dir(&order.folder);
    command
}

/// Why the container's program did not start.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("cannot enter its control group: {0}")]
    Cgroup(io::Error),
    #[error("exec: {program:?}: {why}")]
    Exec { program: PathBuf, why: io::Error },
    #[error(transparent)]
    InvalidPid(#[from] TryFromIntError),
}

/// Starts the container's program in a process group of its own.
fn start(order: &Order, doors: &CgroupEntry) -> Result<Pid, StartError> {
    let mut command = command(order, &order.program, &order.args);
    command.stdin(Stdio::null()).process_group(0);
    let child = doors.inside(|| command.spawn());
    let child = child.map_err(StartError::Cgroup)?;
    let child = child.map_err(|why| StartError::Exec { program: order.program.clone(), why })?;
    Ok(Pid::from_raw(i32::try_from(child.id())?))
}

/// Executes the node's requests until the socket closes.
fn obey(words: BufReader<UnixStream>, child: Pid, errands: &ExecCommands) {
    for line in words.lines() {
        let Ok(line) = line else { break };
        match serde_json::from_str(&line) {
            Ok(Word::Terminate) => {
                // Sent to the whole group, since shells do not forward signals.
                let _ = nix::sys::signal::killpg(child, Signal::SIGTERM);
            }
            Ok(Word::Run(errand)) => errands.begin(errand),
            Ok(Word::Kill) | Err(_) => children::kill(child),
        }
    }
    children::kill(child);
}

fn tell(mut socket: &UnixStream, report: &Report) {
    let mut line = serde_json::to_vec(report).unwrap_or_default();
    line.push(b'\n');
    // If the node is gone, nobody needs the report.
    let _ = socket.write_all(&line);
}
