import Foundation
import ReactiveCore
import ReactiveFoundation
import Testing

/// Compiles only if the two times are different types.
private protocol Named { static var name: String { get } }
extension RunLoop.SchedulerTimeType: Named { static var name: String { "run loop" } }
extension OperationQueue.SchedulerTimeType: Named { static var name: String { "operation queue" } }
extension RunLoop.SchedulerTimeType.Stride: Named { static var name: String { "run loop" } }
extension OperationQueue.SchedulerTimeType.Stride: Named { static var name: String { "operation queue" } }

@Suite struct SchedulerTimeTypeTests {
  typealias Time = RunLoop.SchedulerTimeType
  typealias Stride = Time.Stride

  func time(_ seconds: TimeInterval) -> Time { Time(Date(timeIntervalSinceReferenceDate: seconds)) }

  @Test func aStrideIsANumberOfSeconds() {
    #expect((1.2 as Stride).magnitude == 1.2)
    #expect((2 as Stride).timeInterval == 2)
    #expect(Stride.seconds(2.2).magnitude == 2.2)
    #expect(Stride.seconds(2).magnitude == 2)
    #expect(Stride.milliseconds(2).magnitude == 0.002)
    #expect(Stride.microseconds(2).magnitude == 2e-6)
    #expect(Stride.nanoseconds(2).magnitude == 2e-9)
    #expect(Stride(exactly: 871 as UInt64)?.magnitude == 871)
    #expect(Stride(exactly: UInt64.max) == nil)
    #expect(Stride.nanoseconds(.max).magnitude == 9_223_372_036.854776)
    #expect(Stride.seconds(Double.infinity).magnitude == .infinity)
  }

  @Test func strideArithmetic() {
    var stride = Stride.milliseconds(-12) + .seconds(7)
    #expect(stride.magnitude == 6.988)
    stride -= 6.988
    stride += 3
    stride *= -2
    #expect(stride == -6)
    #expect(-stride - 4 == 2)
    #expect(Stride(3) * 4 == 12)
    #expect(Stride.nanoseconds(-2) > .microseconds(-10))
  }

  @Test func timesAdvanceAndAreApart() {
    #expect(time(10_000).advanced(by: -220) == time(9_780))
    #expect(time(1).advanced(by: .microseconds(-1)) == time(0.999999))
    #expect(time(10_000).distance(to: time(10_431)) == 431)
    #expect(time(10_431).distance(to: time(10_000)) == -431)
    #expect(time(1) < time(2))
    #expect(Set([time(1), time(1), time(2)]).count == 2)
  }

  @Test func timesAndStridesSurviveEncoding() throws {
    let bytes = try JSONEncoder().encode(time(1_024.75))
    #expect(String(decoding: bytes, as: UTF8.self) == #"{"date":1024.75}"#)
    #expect(try JSONDecoder().decode(Time.self, from: bytes) == time(1_024.75))
    let strideBytes = try JSONEncoder().encode(Stride(1_024.5))
    #expect(String(decoding: strideBytes, as: UTF8.self) == #"{"magnitude":1024.5}"#)
    #expect(try JSONDecoder().decode(Stride.self, from: strideBytes) == 1_024.5)
  }

  @Test func runLoopsAndOperationQueuesHaveTimesOfTheirOwn() {
    #expect(RunLoop.SchedulerTimeType.self != OperationQueue.SchedulerTimeType.self)
  }

  @Test func theTimesOfRunLoopsAndOperationQueuesConformSeparately() {
    #expect(RunLoop.SchedulerTimeType.name != OperationQueue.SchedulerTimeType.name)
    #expect(RunLoop.SchedulerTimeType.Stride.name != OperationQueue.SchedulerTimeType.Stride.name)
    let moment = OperationQueue.SchedulerTimeType(Date(timeIntervalSinceReferenceDate: 1))
    #expect(moment.advanced(by: .milliseconds(500)).date.timeIntervalSinceReferenceDate == 1.5)
    #expect(moment.distance(to: moment.advanced(by: -2)).timeInterval == -2)
  }
}
