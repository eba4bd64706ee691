//! An endpoint that answers as a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A request that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// The path and the query.
    pub(crate) target: String,
    /// The headers, with names in small letters.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }
}

/// The outcome of a request.
pub(crate) enum Reply {
    /// A status, headers, and a body.
    Answer(u16, Vec<(String, String)>, Vec<u8>),
    /// The connection ends without an answer.
    Lost,
    /// Nothing comes, and the connection stays.
    Silence,
}

/// An endpoint.
pub(crate) struct Endpoint {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Endpoint {
    pub(crate) fn new(reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/account/container", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (all, reply) = (Arc::clone(&asked), Arc::new(reply));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), all, reply) = (stream, Arc::clone(&all), Arc::clone(&reply))
                else {
                    return;
                };
                thread::spawn(move || converse(stream, &all, reply.as_ref()));
            }
        });
        Self { url, asked }
    }

    /// Returns the requests that came so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn converse(stream: TcpStream, all: &Mutex<Vec<Asked>>, reply: &dyn Fn(&Asked) -> Reply) {
    let mut reader = BufReader::new(stream);
    while let Some(asked) = read(&mut reader) {
        all.lock().unwrap().push(asked.clone());
        let stream = reader.get_mut();
        match reply(&asked) {
            Reply::Lost => return,
            Reply::Silence => {
                // Until the client leaves.
                let _ = stream.read(&mut [0]);
                return;
            }
            Reply::Answer(status, headers, body) => {
                let mut head = format!("HTTP/1.1 {status} X\r\n");
                for (name, value) in headers {
                    head = format!("{head}{name}: {value}\r\n");
                }
                let length = body.len();
                let head = format!("{head}content-length: {length}\r\n\r\n");
                let body = if asked.method == "HEAD" { &[][..] } else { &body };
                let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
                if sent.is_err() {
                    return;
                }
            }
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let mut parts = line.split(' ');
    let (method, target) = (parts.next()?.to_owned(), parts.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let mut asked = Asked { method, target, headers, body: Vec::new() };
    let length = asked.header("content-length").map_or(0, |length| length.parse().unwrap());
    asked.body = vec![0; length];
    reader.read_exact(&mut asked.body).ok()?;
    Some(asked)
}
