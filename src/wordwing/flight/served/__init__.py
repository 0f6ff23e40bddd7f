"""The lab as a MAVLink vehicle: it answers as ArduCopter or as PX4 would, and can be made to fail."""
