/// What has gone through a loop's connections since this was last added to the broker's numbers: by itself, since those are shared by all loops.
struct LoopTraffic {
  var recordsReceived = 0
  var recordsSent = 0
  var bytesReceived = 0
  var bytesSent = 0

  /// Adds it up, and begins anew.
  mutating func settle(with metrics: BrokerMetrics) {
    guard bytesReceived != 0 || bytesSent != 0 else { return }
    metrics.add(.bytesReceived, bytesReceived)
    metrics.add(.bytesSent, bytesSent)
    if recordsReceived != 0 { metrics.add(.recordsReceived, recordsReceived) }
    if recordsSent != 0 { metrics.add(.recordsSent, recordsSent) }
    self = LoopTraffic()
  }
}
