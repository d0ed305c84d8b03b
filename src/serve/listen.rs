//! Connections: so many at a time, each with heads of bounded length and time, and none for ever.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use super::{Shared, gate, routes};
use crate::console::tell;
use crate::error::{Error, Result};

/// How often a followed folder is looked at.
const FOLLOW: Duration = Duration::from_millis(500);

/// Accepts connections until it is stopped; then waits for those that have a request on its way.
pub(super) async fn accept(
    listener: TcpListener,
    shared: Arc<Shared>,
    mut stopped: watch::Receiver<bool>,
) -> Result<()> {
    let failed = |cause| Error::storage("connections", cause);
    let listener = tokio::net::TcpListener::from_std(listener).map_err(failed)?;
    let limits = shared.settings.limits;
    let room = Arc::new(Semaphore::new(limits.connections));
    let router = routes::router(Arc::clone(&shared));
    if shared.settings.follow {
        tokio::spawn(follow(Arc::clone(&shared), stopped.clone()));
    }
    loop {
        // Who comes when there is no room waits in the system's queue.
        let place = tokio::select! {
            _ = stopped.wait_for(|stopped| *stopped) => break,
            place = Arc::clone(&room).acquire_owned() => place.expect("it is never closed"),
        };
        let accepted = tokio::select! {
            _ = stopped.wait_for(|stopped| *stopped) => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (shared, router, stopped) = (Arc::clone(&shared), router.clone(), stopped.clone());
                tokio::spawn(async move {
                    connection(stream, shared, router, stopped).await;
                    drop(place);
                });
            }
            Err(cause) => {
                // Too many open files, for example: those that close make room.
                tell(format_args!("warning: a connection could not be accepted: {cause}"));
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
    // Connections have heard, too; a request has its time, and no more.
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    let _ = timeout(limits.request, room.acquire_many(all)).await;
    Ok(())
}

/// Answers the requests of a connection, until either side closes it, it is too old, or the server stops.
async fn connection(stream: TcpStream, shared: Arc<Shared>, router: axum::Router, mut stopped: watch::Receiver<bool>) {
    let limits = shared.settings.limits;
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let (shared, router) = (Arc::clone(&shared), router.clone());
        async move { Ok::<_, Infallible>(gate::answer(&shared, router, request.map(Body::new)).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.request).max_buf_size(limits.head.max(8 << 10));
    let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        _ = connection.as_mut() => true,
        () = sleep(limits.connection) => false,
        _ = stopped.wait_for(|stopped| *stopped) => false,
    };
    if !ended {
        connection.as_mut().graceful_shutdown();
        // Who does not take an answer is not waited for.
        let _ = timeout(limits.request, connection).await;
    }
}

/// Looks again and again whether a followed folder names another index.
async fn follow(shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            _ = stopped.wait_for(|stopped| *stopped) => return,
            () = sleep(FOLLOW) => {}
        }
        let shared = Arc::clone(&shared);
        let looked = tokio::task::spawn_blocking(move || {
            if shared.current.is_behind(&shared.settings) {
                // What is wrong has been told.
                let _ = shared.current.reload(&shared.settings, &shared.metrics);
            }
        });
        let _ = looked.await;
    }
}
