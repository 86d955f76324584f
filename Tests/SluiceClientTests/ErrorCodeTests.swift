import SluiceWire
import Testing

@testable import SluiceClient

/// The codes of errors: numbers that keep their meaning, and their names.
@Suite struct ErrorCodeTests {
  private typealias Code = ClientError.Code

  @Test func eachHasANumberAndANameOfItsOwn() {
    #expect(Set(Code.all.map(\.code.rawValue)).count == Code.all.count)
    #expect(Set(Code.all.map(\.name)).count == Code.all.count)
    for (code, name) in Code.all {
      #expect(code.description == name)
      #expect(Code(rawValue: code.rawValue) == code)
    }
    #expect(Code(rawValue: 999_999).description == "error 999999")
  }

  /// A code of the protocol has the protocol's number and name, unless programs see several of them as one.
  @Test func eachCodeOfTheProtocolIsKnown() {
    let merged: [ErrorCode: Code] = [
      .handshakeTimeout: .connectTimeout, .malformedFrame: .protocolViolation,
      .frameTooLarge: .protocolViolation,
      .unsupportedFrame: .protocolViolation, .unexpectedFrame: .protocolViolation,
      .invalidStream: .protocolViolation, .malformedBatch: .protocolViolation,
      .demandExceeded: .protocolViolation, .invalidDemand: .protocolViolation, .producerFailure: .topicFailed,
    ]
    let known = Set(Code.all.map(\.code))
    for number in 0...300 as ClosedRange<UInt32> {
      let code = ErrorCode(rawValue: number)
      let seen = Code(code)
      #expect(known.contains(seen), "\(code)")
      guard code.isDefined else {
        #expect(seen == .refused, "\(number)")
        continue
      }
      if let expected = merged[code] {
        #expect(seen == expected, "\(code)")
      } else {
        #expect(seen.rawValue == number && seen.description == code.description, "\(code)")
      }
    }
    // The client's own codes have numbers that no broker sends.
    for (code, name) in Code.all where !ErrorCode(rawValue: code.rawValue).isDefined {
      #expect(code.rawValue >= 1_000, "\(name)")
    }
  }

  /// The numbers are part of the interface: a program may store them.
  @Test func aProgramCanSwitchOverThem() {
    func isWorthRetrying(_ code: Code) -> Bool {
      switch code {
      case .connectionRefused, .cutOff, .storageFull: true
      case .topicEnded, .permissionDenied: false
      default: false
      }
    }
    #expect(isWorthRetrying(.cutOff) && isWorthRetrying(Code(rawValue: 122)))
    #expect(!isWorthRetrying(.topicEnded) && !isWorthRetrying(Code(rawValue: 124)))
  }
}
