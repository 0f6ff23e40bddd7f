"""The lab as a MAVLink vehicle: it imitates ArduCopter or PX4, and faults can be injected."""
