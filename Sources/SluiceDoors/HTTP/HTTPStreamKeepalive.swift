import SluiceHTTP
import SluiceIO

/// Calls back after each interval without output, so that the gateway sends a keepalive: TCP detects a vanished client only by bytes that it doesn't
/// acknowledge. On its loop only.
final class HTTPStreamKeepalive {
  private let loop: any EventLoop
  private let interval: Duration
  private let tick: () -> Void
  private var timer: TimerToken?
  /// Whether something was written since the timer was set.
  private var isBusy = false

  /// - Parameters:
  ///   - interval: more than 0.
  ///   - loop: the answer's.
  ///   - tick: is called after each interval without ``note()``.
  init(every interval: Duration, on loop: any EventLoop, _ tick: @escaping () -> Void) {
    self.loop = loop
    self.interval = interval
    self.tick = tick
    rearm()
  }

  deinit { if let timer { loop.cancel(timer) } }

  /// Records that output was written. Sets no timer, since it is called for each batch.
  func note() { isBusy = true }

  /// The keepalive interval of a request: `keepalive=15s`, or the default for events; nil for none.
  static func interval(
    _ request: HTTPRequest, _ format: HTTPRecordFormat, _ options: DoorOptions
  ) throws(HTTPProblem) -> Duration? {
    guard let interval = try request.duration("keepalive") else {
      return format == .lines ? nil : options.keepalive
    }
    guard interval >= .milliseconds(100) else { throw HTTPProblem(400, "keepalive must be at least 100ms") }
    guard format.filler != nil else {
      throw HTTPProblem(400, "payloads alone leave no room for keepalive; read lines or events")
    }
    return interval
  }

  private func rearm() {
    timer = loop.schedule(after: interval) { [weak self] in
      guard let self else { return }
      timer = nil
      if !isBusy { tick() }
      isBusy = false
      rearm()
    }
  }
}
