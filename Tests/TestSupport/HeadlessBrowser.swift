import Glibc

/// Chromium without a window, controlled by its remote protocol: JSON messages, each followed by a zero byte.
///
/// Used by one thread at a time.
public final class HeadlessBrowser {
  private let process: ChildProcess
  private let profile: String
  private var lastNumber = 0
  private var session: String?
  /// The number of output bytes searched so far.
  private var looked = 0

  /// Starts the browser with an empty page.
  public init(_ program: String) throws {
    var template = Array("/tmp/sluice-browser-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw TestFailure("mkdtemp: error \(errno)") }
    profile = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    // It reads from descriptor 3 and answers on 4. As root it has no sandbox; it shows only our own pages.
    let options =
      "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --remote-debugging-pipe"
    process = try ChildProcess(
      "/bin/sh",
      ["-c", "exec \(program) \(options) --user-data-dir=\(profile) about:blank 3<&0 4>&1 1>/dev/null"],
      input: .open)
    let target = try text("targetId", in: call("Target.createTarget", "{\"url\":\"about:blank\"}"))
    session = try text(
      "sessionId", in: call("Target.attachToTarget", "{\"targetId\":\"\(target)\",\"flatten\":true}"))
    _ = try call("Log.enable")
    _ = try call("Runtime.enable")
  }

  deinit {
    process.stop()
    _ = try? ChildProcess("/bin/rm", ["-rf", profile]).waitForExit()
  }

  public func open(_ address: String) throws {
    _ = try call("Page.navigate", "{\"url\":\"\(address)\"}")
  }

  /// - Parameter dark: whether the user prefers dark mode.
  public func show(width: Int, dark: Bool) throws {
    _ = try call(
      "Emulation.setDeviceMetricsOverride",
      "{\"width\":\(width),\"height\":800,\"deviceScaleFactor\":1,\"mobile\":\(width < 500)}")
    _ = try call(
      "Emulation.setEmulatedMedia",
      "{\"features\":[{\"name\":\"prefers-color-scheme\",\"value\":\"\(dark ? "dark" : "light")\"}]}")
  }

  /// Whether an expression is true in the page. The expression may contain only single quotation marks.
  public func holds(_ expression: String) throws -> Bool {
    try call("Runtime.evaluate", "{\"expression\":\"Boolean(\(expression))\",\"returnByValue\":true}")
      .contains("\"value\":true")
  }

  /// Waits until an expression is true.
  public func wait(_ expression: String) throws {
    try eventually(expression, every: 0.2) { try holds(expression) }
  }

  public func run(_ expression: String) throws {
    _ = try call("Runtime.evaluate", "{\"expression\":\"\(expression)\"}")
  }

  /// The page's errors so far: exceptions of scripts, and violations of its content policy.
  public var complaints: [String] {
    process.standardOutput.bytes.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }.filter {
      $0.contains("\"method\":\"Runtime.exceptionThrown\"")
        || ($0.contains("\"method\":\"Log.entryAdded\"") && $0.contains("\"source\":\"security\""))
    }
  }

  private func call(_ method: String, _ parameters: String = "{}") throws -> String {
    lastNumber += 1
    let session = session.map { ",\"sessionId\":\"\($0)\"" } ?? ""
    let message = "{\"id\":\(lastNumber),\"method\":\"\(method)\",\"params\":\(parameters)\(session)}"
    try process.write(Array(message.utf8) + [0])
    let start = "{\"id\":\(lastNumber),"
    var answer: String?
    try eventually("an answer to \(method); \(process.standardError.text.suffix(500))") {
      let bytes = process.standardOutput.bytes
      while answer == nil, let end = bytes[looked...].firstIndex(of: 0) {
        let text = String(decoding: bytes[looked..<end], as: UTF8.self)
        looked = end + 1
        if text.hasPrefix(start) { answer = text }
      }
      return answer != nil
    }
    return answer!
  }

  private func text(_ name: String, in answer: String) throws -> String {
    let mark = "\"\(name)\":\""
    for start in answer.indices where answer[start...].hasPrefix(mark) {
      return String(answer[start...].dropFirst(mark.count).prefix { $0 != "\"" })
    }
    throw TestFailure("there is no \(name) in \(answer)")
  }
}
