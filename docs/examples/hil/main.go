// Program hil couples a device in real time: a motor in another process, connected by UDP, with a
// controller in Go.
//
//	hil            the controller, which also starts the device
//	hil device     the simulated device: prints its address and answers there
//
// A datagram to the device holds the number of the macro step, its length H and the voltage. The
// answer holds the number and the speed after the step. Each value has 8 bytes.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"math"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/macrostep/macrostep/algorithms"
	"github.com/macrostep/macrostep/master"
	"github.com/macrostep/macrostep/master/native"
)

// device is the motor as a subsystem. It cannot roll back. If an answer does not arrive within half a
// step, it counts as lost and the output keeps its value.
type device struct {
	info   master.Info
	conn   net.Conn
	number uint64
	u, y   float64
	lost   int
	buffer [64]byte
}

func dial(name, address string) (*device, error) {
	conn, err := net.Dial("udp", address)
	if err != nil {
		return nil, err
	}
	return &device{conn: conn, info: master.Info{
		Name: name, Source: address, In: []master.Port{{Name: "voltage", Unit: "V"}}, Out: []master.Port{{Name: "speed", Unit: "rad/s"}},
	}}, nil
}

func (d *device) Info() *master.Info          { return &d.info }
func (d *device) SetInputs(u []float64) error { d.u = u[0]; return nil }
func (d *device) Outputs(y []float64) error   { y[0] = d.y; return nil }
func (d *device) Close() error                { return d.conn.Close() }

func (d *device) Step(_ context.Context, t, H float64) (float64, error) {
	d.number++
	put := func(at int, v uint64) { binary.BigEndian.PutUint64(d.buffer[at:], v) }
	put(0, d.number)
	put(8, math.Float64bits(H))
	put(16, math.Float64bits(d.u))
	if _, err := d.conn.Write(d.buffer[:24]); err != nil {
		return t, fmt.Errorf("sending to the device: %w", err)
	}
	if err := d.conn.SetReadDeadline(time.Now().Add(time.Duration(H / 2 * float64(time.Second)))); err != nil {
		return t, err
	}
	for {
		n, err := d.conn.Read(d.buffer[:])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			d.lost++
			return t + H, nil
		case err != nil:
			return t, fmt.Errorf("the device is gone: %w", err)
		case n == 16 && binary.BigEndian.Uint64(d.buffer[:]) == d.number: // else the answer of an earlier step
			d.y = math.Float64frombits(binary.BigEndian.Uint64(d.buffer[8:]))
			return t + H, nil
		}
	}
}

// serve simulates a motor whose speed follows the voltage with a time constant of 50 ms.
func serve() error {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(conn.LocalAddr())
	speed := 0.0
	var buffer [64]byte
	for {
		n, from, err := conn.ReadFrom(buffer[:])
		if err != nil {
			return err
		}
		if n != 24 {
			continue
		}
		H := math.Float64frombits(binary.BigEndian.Uint64(buffer[8:]))
		voltage := math.Float64frombits(binary.BigEndian.Uint64(buffer[16:]))
		speed += (1 - math.Exp(-H/0.05)) * (10*voltage - speed)
		binary.BigEndian.PutUint64(buffer[8:], math.Float64bits(speed))
		if _, err := conn.WriteTo(buffer[:16], from); err != nil {
			return err
		}
	}
}

// pi is the state of the controller.
type pi struct{ integral, voltage float64 }

func control() error {
	rig := exec.Command(os.Args[0], "device")
	out, err := rig.StdoutPipe()
	if err != nil {
		return err
	}
	if err := rig.Start(); err != nil {
		return err
	}
	defer func() { _ = errors.Join(rig.Process.Kill(), rig.Wait()) }()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the device does not print its address: %w", err)
	}
	motor, err := dial("motor", strings.TrimSpace(address))
	if err != nil {
		return err
	}
	const wanted = 20.0 // rad/s
	controller := native.New(native.Model[pi]{
		Name: "controller", Inputs: []string{"speed"}, Outputs: []string{"voltage"},
		Step: func(s *pi, _, H float64, u []float64) error {
			e := wanted - u[0]
			s.integral += H * e
			s.voltage = 0.2*e + 4*s.integral
			return nil
		},
		Output: func(s *pi, y []float64) { y[0] = s.voltage },
	})
	sys, err := master.NewSystem([]master.Subsystem{controller, motor}, []master.Connection{
		master.Connect("controller.voltage", "motor.voltage"), master.Connect("motor.speed", "controller.speed"),
	})
	if err != nil {
		return err
	}
	choice, err := algorithms.New("explicit", nil)
	if err != nil {
		return err
	}
	run, err := master.NewRun(sys, choice.Algorithm, master.Options{Stop: 1, Step: 2e-3, Realtime: &master.Realtime{Overrun: master.SkipSlots}})
	if err != nil {
		return err
	}
	result, err := run.Run(context.Background())
	if err != nil {
		return err
	}
	speed, err := run.Real("motor.speed")
	fmt.Printf("speed %.1f rad/s after %d steps, %d answers lost\n", speed, result.Accepted, motor.lost)
	l := result.Realtime.Lateness
	fmt.Printf("late by %.0f µs (50 %%), %.0f µs (99 %%), %.0f µs at worst; %d of %d deadlines missed\n",
		l.P50*1e6, l.P99*1e6, l.Worst*1e6, result.Realtime.Overruns, result.Realtime.Deadlines)
	return err
}

func main() {
	run := control
	if len(os.Args) > 1 && os.Args[1] == "device" {
		run = serve
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
}
