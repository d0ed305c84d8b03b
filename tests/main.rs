// Processes on loopback that meet, exchange rows and fail together.
mod rendezvous;
