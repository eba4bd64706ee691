//! A relay between a store and a server that cuts connections in the middle of a message.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// No connection is cut.
const NEVER: i64 = i64::MAX;

#[derive(Debug)]
struct Plan {
    /// Bytes of one direction until a connection is cut.
    left: AtomicI64,
    /// Bytes of answers count, not those of requests.
    counts_answers: AtomicBool,
    cuts: AtomicU64,
    ends: AtomicBool,
}

/// A relay over TCP to a Unix socket. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    plan: Arc<Plan>,
    port: u16,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    pub(crate) fn start(server: &Path) -> Self {
        let plan = Arc::new(Plan {
            left: AtomicI64::new(NEVER),
            counts_answers: AtomicBool::new(false),
            cuts: AtomicU64::new(0),
            ends: AtomicBool::new(false),
        });
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (own, server) = (Arc::clone(&plan), server.to_owned());
        let thread = thread::spawn(move || accept(&listener, &server, &own));
        Self { plan, port, thread: Some(thread) }
    }

    pub(crate) fn uri(&self) -> String {
        format!("nbd://127.0.0.1:{}/", self.port)
    }

    /// Cuts a connection after that many further bytes of requests, or of answers.
    pub(crate) fn cut_after(&self, bytes: u32, counts_answers: bool) {
        self.plan.counts_answers.store(counts_answers, Ordering::Release);
        self.plan.left.store(bytes.into(), Ordering::Release);
    }

    /// Returns the number of connections that were cut.
    pub(crate) fn cuts(&self) -> u64 {
        self.plan.cuts.load(Ordering::Acquire)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.plan.ends.store(true, Ordering::Release);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, server: &Path, plan: &Arc<Plan>) {
    while let Ok((client, _)) = listener.accept() {
        if plan.ends.load(Ordering::Acquire) {
            return;
        }
        // Without a server, the client sees the end of its connection.
        let Ok(server) = UnixStream::connect(server) else { continue };
        let plan = Arc::clone(plan);
        thread::spawn(move || relay(&client, &server, &plan));
    }
}

/// Passes bytes on until an end, or a cut. At a cut, the server gets no more, and the client sees the
/// end only when the server is done with the connection.
fn relay(client: &TcpStream, server: &UnixStream, plan: &Plan) {
    let is_cut = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = pass(client, server, plan, &is_cut, false);
            let _ = server.shutdown(Shutdown::Write);
        });
        let _ = pass(server, client, plan, &is_cut, true);
        // The client is gone: the remaining answers are dropped.
        let (mut from, mut sink) = (server, io::sink());
        let _ = server.shutdown(Shutdown::Write);
        let _ = io::copy(&mut from, &mut sink);
        let _ = client.shutdown(Shutdown::Both);
    });
}

fn pass(
    mut from: impl Read,
    mut to: impl Write,
    plan: &Plan,
    is_cut: &AtomicBool,
    is_answer: bool,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let got = from.read(&mut buffer)?;
        if got == 0 || is_cut.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut passed = got;
        if plan.counts_answers.load(Ordering::Acquire) == is_answer {
            let got = i64::try_from(got).expect("a small buffer");
            let left = plan.left.load(Ordering::Acquire);
            if left != NEVER {
                let before = plan.left.fetch_sub(got, Ordering::AcqRel);
                if (0..got).contains(&before) {
                    plan.left.store(NEVER, Ordering::Release);
                    passed = usize::try_from(before).expect("below the buffer");
                }
            }
        }
        to.write_all(&buffer[..passed])?;
        if passed < got {
            is_cut.store(true, Ordering::Release);
            plan.cuts.fetch_add(1, Ordering::AcqRel);
            return Ok(());
        }
    }
}
