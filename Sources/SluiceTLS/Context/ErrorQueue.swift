import COpenSSL

/// What OpenSSL has noted about the calling thread's last call.
enum ErrorQueue {
  /// Before a call whose failure is to be told.
  static func clear() {
    ERR_clear_error()
  }

  /// The reason of the first note, of which the others follow; 0 when there is none, or it is of another library than `library`.
  static func reason(in library: Int32) -> Int32 {
    let code = ERR_peek_error()
    return code != 0 && ERR_GET_LIB(code) == library ? ERR_GET_REASON(code) : 0
  }

  /// The first note in words; empties the queue.
  static func takeText() -> String {
    let code = ERR_get_error()
    ERR_clear_error()
    guard code != 0 else { return "OpenSSL doesn't say why" }
    if let text = unsafe ERR_reason_error_string(code) { return unsafe String(cString: text) }
    return "OpenSSL's error \(code)"
  }
}
