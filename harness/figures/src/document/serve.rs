//! A page on the loopback address. In: requests of browsers on this machine. Out: the page, and the short text by which it knows that it is
//! out of date.
//!
//! Other users of the machine, and pages of other sites, reach the loopback address too: the path begins with a random key, as in the addresses
//! of Jupyter, and a request with another host name than the server's own is refused. Of a request at most [`REQUEST_BYTES`] are read.

use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const REQUEST_BYTES: usize = 8 << 10;
/// How long a browser may take to send a request, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a browser asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    Page,
    /// What is different as soon as the page is out of date.
    State,
}

/// A page that is served.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    /// `127.0.0.1:4040`, and the same by name.
    hosts: [String; 2],
    /// The first part of each path.
    key: String,
}

impl Server {
    /// Listen on a port, or on a free one for 0.
    pub fn begin(port: u16) -> Result<Server> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        // The standard library keys each of these hashers with random bits of the operating system.
        let key = [(); 2].map(|()| format!("{:016x}", RandomState::new().hash_one(port))).concat();
        Ok(Server { listener, hosts: [format!("127.0.0.1:{port}"), format!("localhost:{port}")], key })
    }

    /// `http://127.0.0.1:4040/5d0c…/`
    pub fn address(&self) -> String {
        format!("http://{}/{}/", self.hosts[0], self.key)
    }

    /// Answer one request, if one waits; whether one did. `respond` gives the text, or what went wrong.
    pub fn answer(&self, respond: impl FnOnce(Asked) -> std::result::Result<String, String>) -> bool {
        let Ok((stream, _)) = self.listener.accept() else { return false };
        // What one browser does wrong is no matter of the others.
        drop(self.answer_on(stream, respond));
        true
    }

    fn answer_on(&self, mut stream: TcpStream, respond: impl FnOnce(Asked) -> std::result::Result<String, String>) -> Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let (status, kind, body) = match self.asked(&read_head(&mut stream)?) {
            Ok(asked) => match (respond(asked), asked) {
                (Ok(page), Asked::Page) => ("200 OK", "text/html", page),
                (Ok(state), Asked::State) => ("200 OK", "text/plain", state),
                (Err(wrong), _) => ("500 Internal Server Error", "text/plain", wrong),
            },
            Err((status, why)) => (status, "text/plain", format!("{why}\n")),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
             Content-Security-Policy: frame-ancestors 'none'\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())
    }

    /// What a request asks for, or the status and the reason with which it is refused.
    fn asked(&self, head: &str) -> std::result::Result<Asked, (&'static str, &'static str)> {
        let mut lines = head.split("\r\n");
        let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [method, path, "HTTP/1.0" | "HTTP/1.1"] = first[..] else {
            return Err(("400 Bad Request", "not a request of HTTP/1"));
        };
        if method != "GET" {
            return Err(("405 Method Not Allowed", "only GET is answered"));
        }
        let fields = lines.filter_map(|line| line.split_once(':'));
        let hosts: Vec<&str> =
            fields.filter(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, host)| host.trim()).collect();
        if !matches!(hosts[..], [host] if self.hosts.iter().any(|own| own == host)) {
            return Err(("421 Misdirected Request", "the host of this request is not the server's address"));
        }
        match path.strip_prefix('/').and_then(|path| path.strip_prefix(&self.key)) {
            Some("/") => Ok(Asked::Page),
            Some("/state") => Ok(Asked::State),
            _ => Err(("404 Not Found", "only the address that `collo status --serve` printed is served")),
        }
    }
}

/// The lines of a request up to the empty one; an error where that does not come within the limits.
fn read_head(stream: &mut impl Read) -> Result<String> {
    let begun = Instant::now();
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let n = stream.read(&mut part)?;
        head.extend_from_slice(&part[..n]);
        if n == 0 || head.len() > REQUEST_BYTES || begun.elapsed() > PATIENCE {
            return Err(ErrorKind::InvalidData.into());
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_served_to_those_who_know_its_address() {
        let server = Server::begin(0).unwrap();
        let host = &server.hosts[0];
        let (own, key) = (format!("Host: {host}\r\n"), &server.key);
        let asked = |first: &str, hosts: &str| server.asked(&format!("{first}\r\n{hosts}\r\n")).map_err(|(status, _)| status);
        assert_eq!(asked(&format!("GET /{key}/ HTTP/1.1"), &own), Ok(Asked::Page));
        assert_eq!(asked(&format!("GET /{key}/state HTTP/1.1"), &format!("host: {}\r\n", server.hosts[1])), Ok(Asked::State));
        for other in ["/", "/state", "//", "/0123/", &format!("/{key}"), &format!("/{key}/../state"), &format!("/{key}/runs")] {
            assert_eq!(asked(&format!("GET {other} HTTP/1.1"), &own), Err("404 Not Found"), "{other}");
        }
        let page = format!("GET /{key}/ HTTP/1.1");
        let twice = format!("{own}Host: attacker.example\r\n");
        let followed = format!("Host: {host}.attacker.example\r\n");
        for hosts in ["", "Host: attacker.example\r\n", "Host: 127.0.0.1\r\n", &twice, &followed] {
            assert_eq!(asked(&page, hosts), Err("421 Misdirected Request"), "{hosts}");
        }
        assert_eq!(asked(&page.replace("GET", "POST"), &own), Err("405 Method Not Allowed"));
        for first in ["", "nonsense", &page.replace("/1.1", "/2"), &format!("{page} x")] {
            assert_eq!(asked(first, &own), Err("400 Bad Request"), "{first}");
        }
        let other = Server::begin(0).unwrap();
        assert_ne!(other.key, server.key);
        assert_eq!(server.key.len(), 32);
    }

    #[test]
    fn a_request_without_an_end_is_read_up_to_the_limit() {
        assert_eq!(read_head(&mut std::io::repeat(b'a')).unwrap_err().kind(), ErrorKind::InvalidData);
        assert!(read_head(&mut &b"GET / HTTP/1.1\r\n"[..]).is_err());
        assert_eq!(read_head(&mut &b"GET / HTTP/1.1\r\n\r\n"[..]).unwrap(), "GET / HTTP/1.1\r\n\r\n");
    }
}
