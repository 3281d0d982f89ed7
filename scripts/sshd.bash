# For the scripts that measure uploads, which source this: an OpenSSH server of their own, and a relay that makes it slow. Takes root.
# $work is a folder, $pids the groups of processes that end with the script.

# free_port: prints a port of 127.0.0.1 that nobody has.
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])' 2>/dev/null || echo $((20000 + RANDOM)); }

# listening FILE TEXT: waits until a program has said that it listens.
listening() {
    timeout 30 sh -c "until grep -q '$2' '$1' 2>/dev/null; do sleep 0.1; done" || { cat "$1" >&2; exit 1; }
}

# start_sshd: starts the server in a mount namespace of its own, which has one account more: $user with $password, at $port.
start_sshd() {
    user=case password=bench-password
    local id=23456 hash
    mkdir "$work/home"
    chown $id:$id "$work/home"
    hash=$(openssl passwd -6 "$password" 2>/dev/null) || { echo "$0: there is no openssl" >&2; exit 2; }
    { cat /etc/passwd; echo "$user:x:$id:$id::$work/home:/bin/sh"; } >"$work/passwd"
    { cat /etc/group; echo "$user:x:$id:"; } >"$work/group"
    { cat /etc/shadow; echo "$user:$hash:20000:0:99999:7:::"; } >"$work/shadow"
    ssh-keygen -q -N '' -t ed25519 -f "$work/key"
    port=$(free_port)
    cat >"$work/sshd_config" <<CONFIG
Port $port
ListenAddress 127.0.0.1
HostKey $work/key
PidFile none
StrictModes no
UsePAM no
MaxStartups 1000
PasswordAuthentication yes
KbdInteractiveAuthentication no
Subsystem sftp internal-sftp
ForceCommand internal-sftp
CONFIG
    setsid unshare --mount sh -c "mount -t tmpfs none /run && mkdir -p /run/sshd && mount --bind $work/passwd /etc/passwd &&
        mount --bind $work/group /etc/group && mount --bind $work/shadow /etc/shadow && exec /usr/sbin/sshd -D -e -f $work/sshd_config" \
        2>"$work/sshd.log" &
    pids+=($!)
    listening "$work/sshd.log" 'Server listening'
}

# start_relay: adds 80 ms to a round trip to the server, at $relay: each piece waits 40 ms on its way, in both directions.
start_relay() {
    relay=$(free_port)
    cat >"$work/relay.py" <<'PYTHON'
import asyncio, sys
there, here = int(sys.argv[1]), int(sys.argv[2])

async def hand_on(reader, writer):
    loop, queue = asyncio.get_running_loop(), asyncio.Queue(maxsize=4096)
    async def write():
        while (piece := await queue.get()) is not None:
            at, data = piece
            await asyncio.sleep(max(0, at - loop.time()))
            writer.write(data)
            await writer.drain()
        writer.close()
    writing = asyncio.create_task(write())
    try:
        while data := await reader.read(262144):
            await queue.put((loop.time() + 0.04, data))
    except ConnectionError:
        pass
    await queue.put(None)
    await writing

async def taken(reader, writer):
    there_reader, there_writer = await asyncio.open_connection("127.0.0.1", there)
    await asyncio.gather(hand_on(reader, there_writer), hand_on(there_reader, writer), return_exceptions=True)

async def main():
    server = await asyncio.start_server(taken, "127.0.0.1", here)
    print("listening", flush=True)
    await server.serve_forever()
asyncio.run(main())
PYTHON
    setsid python3 "$work/relay.py" "$port" "$relay" >"$work/relay.log" 2>&1 &
    pids+=($!)
    listening "$work/relay.log" listening
}

# known_hosts PORT…: the server's lines of known_hosts, for these ports.
known_hosts() {
    local at
    for at in "$@"; do echo "[127.0.0.1]:$at $(cut -d' ' -f1-2 "$work/key.pub")"; done
}
