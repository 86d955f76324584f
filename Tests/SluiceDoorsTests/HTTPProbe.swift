import SluiceWebSocket
import SluiceWire
import TestSupport

@testable import SluiceDoors

/// Gives any bytes to all that reads requests of HTTP.
enum HTTPProbe: Probe {
  enum Target: String, CaseIterable, Sendable {
    /// A byte for how the stream is cut, then the stream: requests with their bodies.
    case httpRequests
  }

  private static let longestBody = 4096

  static func run(_ target: Target, on input: [UInt8]) throws {
    var input = ProbeInput(input)
    let step = max(1, Int(input.byte()))
    let stream = input.remaining()
    let whole = try outcome([stream])
    let cut = try outcome(
      stride(from: 0, to: stream.count, by: step).map { Array(stream[$0..<min($0 + step, stream.count)]) })
    guard whole == cut else { throw ProbeViolation("cut every \(step) bytes: \(cut) instead of \(whole)") }
  }

  /// What a connection makes of chunks: a line for each request, and the problem that ends it.
  private static func outcome(_ chunks: [[UInt8]]) throws -> [String] {
    var lines: [String] = []
    var (reader, body, request) = (HTTPHeadReader(), HTTPBodyReader?.none, HTTPRequest?.none)
    for chunk in chunks {
      var rest = chunk[...]
      do {
        while !rest.isEmpty {
          if body == nil {
            guard let found = try withExactMemory(Array(rest), { try reader.take($0) }) else { break }
            rest = rest.dropFirst(found.taken)
            reader = HTTPHeadReader()
            let read = try HTTPRequest(found.head)
            request = read
            body = HTTPBodyReader(length: try read.bodyLength(), limit: longestBody)
          } else if let taken = try body?.take(rest) {
            rest = rest.dropFirst(taken)
          }
          guard let read = body, read.isDone else { continue }
          request?.body = read.body
          if let request { lines.append(try describe(request)) }
          (body, request) = (nil, nil)
        }
      } catch let problem as HTTPProblem {
        return lines + ["\(problem.status) \(problem.message)"]
      } catch let fault as HTTPRequestHead.Fault {
        return lines + ["\(fault)"]
      }
      guard reader.heldBytes <= 32_768, body?.body.count ?? 0 <= longestBody else {
        throw ProbeViolation(
          "\(reader.heldBytes) bytes of a head and \(body?.body.count ?? 0) of a body are held")
      }
    }
    return lines
  }

  /// Everything that is read of a request; what is wrong with each of it.
  private static func describe(_ request: HTTPRequest) throws -> String {
    func told(_ body: () throws -> Any?) -> String {
      do {
        return try body().map { "\($0)" } ?? "nil"
      } catch let problem as HTTPProblem {
        return "\(problem.status) \(problem.message)"
      } catch {
        return "\(error)"
      }
    }
    let parts: [String] = [
      request.head.method, "\(request.path)", "\(request.body.count)", told { try request.start() },
      told { try request.count() }, told { try request.filter() }, told { try request.acknowledgement() },
      told { try request.key() },
      told { try HTTPResumption(request) }, told { try request.credentials() },
      told { try request.duration("wait") }, told { try request.settings() }, "\(request.keepsAlive)",
      told { try HTTPGroupSettling.offsets(request.body) },
      told { try HTTPPublishing.batch(of: request).count },
    ]
    return parts.joined(separator: " ")
  }
}
